// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package tokensecret_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/rollcall-dev/rollcall/pkg/credentials/plugin"
	tokensecret "github.com/rollcall-dev/rollcall/plugins/token-secret"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// newHub serves the Secrets, but forbids reading those of namespace "sealed". It
// returns the path of a kubeconfig whose context has namespace "clusters".
func newHub(t *testing.T, secrets ...*corev1.Secret) string {
	t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		status := func(code int32, reason metav1.StatusReason) {
			w.WriteHeader(int(code))
			_ = json.NewEncoder(w).Encode(metav1.Status{
				TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
				Status:   metav1.StatusFailure, Code: code, Reason: reason,
			})
		}
		if request.Header.Get("Authorization") != "Bearer hub-token" {
			status(http.StatusUnauthorized, metav1.StatusReasonUnauthorized)
			return
		}
		if strings.Contains(request.URL.Path, "/namespaces/sealed/") {
			status(http.StatusForbidden, metav1.StatusReasonForbidden)
			return
		}
		for _, secret := range secrets {
			if request.URL.Path == fmt.Sprintf("/api/v1/namespaces/%s/secrets/%s", secret.Namespace, secret.Name) {
				_ = json.NewEncoder(w).Encode(secret)
				return
			}
		}
		status(http.StatusNotFound, metav1.StatusReasonNotFound)
	}))
	t.Cleanup(server.Close)

	// The path of the CA is relative, as kubeconfigs allow.
	dir := t.TempDir()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	if err := os.WriteFile(filepath.Join(dir, "ca.pem"), ca, 0o600); err != nil {
		t.Fatal(err)
	}
	config := clientcmdapi.NewConfig()
	config.Clusters["hub"] = &clientcmdapi.Cluster{Server: server.URL, CertificateAuthority: "ca.pem"}
	config.AuthInfos["me"] = &clientcmdapi.AuthInfo{Token: "hub-token"}
	config.AuthInfos["stranger"] = &clientcmdapi.AuthInfo{Token: "wrong"}
	config.Contexts["hub"] = &clientcmdapi.Context{Cluster: "hub", AuthInfo: "me", Namespace: "clusters"}
	config.CurrentContext = "hub"
	path := filepath.Join(dir, "kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}
	return path
}

func secret(namespace, name string, data map[string]string) *corev1.Secret {
	s := &corev1.Secret{
		TypeMeta:   metav1.TypeMeta{Kind: "Secret", APIVersion: "v1"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Data:       map[string][]byte{},
	}
	for key, value := range data {
		s.Data[key] = []byte(value)
	}
	return s
}

// run runs the plugin for a cluster with the config. Secrets need no annotation.
func run(t *testing.T, config string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	info := fmt.Sprintf(`{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1",
		"spec":{"cluster":{"server":"https://c1:6443","config":%s},"interactive":false}}`, config)
	var out, errs bytes.Buffer
	code = plugin.Run(t.Context(), tokensecret.New(), append([]string{"--any-server"}, args...), []string{"KUBERNETES_EXEC_INFO=" + info}, &out, &errs)
	return code, out.String(), errs.String()
}

func jwt(claims string) string {
	encode := base64.RawURLEncoding.EncodeToString
	return encode([]byte(`{"alg":"none"}`)) + "." + encode([]byte(claims)) + "." + encode([]byte("signature"))
}

func TestTokens(t *testing.T) {
	expiring := jwt(`{"exp":4102444800}`)
	kubeconfig := newHub(t,
		secret("clusters", "c1", map[string]string{"token": "secret-1\n", "other": "secret-2", "empty": " \n", "jwt": expiring}),
		secret("elsewhere", "c1", map[string]string{"token": "secret-3"}),
	)
	for _, test := range []struct {
		name   string
		config string
		args   []string
		token  string
		expiry string
	}{
		{
			name:   "the default key and namespace",
			config: `{"secretRef":{"name":"c1"}}`,
			token:  "secret-1",
		},
		{
			name:   "clusterName",
			config: `{"clusterName":"c1"}`,
			token:  "secret-1",
		},
		{
			name:   "a key",
			config: `{"secretRef":{"namespace":"clusters","name":"c1","key":"other"}}`,
			token:  "secret-2",
		},
		{
			name:   "a JWT with an expiry",
			config: `{"secretRef":{"name":"c1","key":"jwt"}}`,
			token:  expiring,
			expiry: "2100-01-01T00:00:00Z",
		},
		{
			name:   "--namespace sets the default namespace",
			config: `{"secretRef":{"name":"c1"}}`,
			args:   []string{"--namespace=elsewhere"},
			token:  "secret-3",
		},
		{
			name:   "an allowed namespace",
			config: `{"secretRef":{"namespace":"elsewhere","name":"c1"}}`,
			args:   []string{"--allowed-namespace=clusters", "--allowed-namespace=elsewhere"},
			token:  "secret-3",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			code, stdout, stderr := run(t, test.config, append(test.args, "--kubeconfig="+kubeconfig)...)
			g.Expect(stderr).To(BeEmpty())
			g.Expect(code).To(Equal(plugin.ExitOK))
			var output struct {
				APIVersion string `json:"apiVersion"`
				Status     struct {
					Token               string `json:"token"`
					ExpirationTimestamp string `json:"expirationTimestamp"`
				} `json:"status"`
			}
			g.Expect(json.Unmarshal([]byte(stdout), &output)).To(Succeed())
			g.Expect(output.APIVersion).To(Equal("client.authentication.k8s.io/v1"))
			g.Expect(output.Status.Token).To(Equal(test.token))
			g.Expect(output.Status.ExpirationTimestamp).To(Equal(test.expiry))
		})
	}
}

func TestRefusals(t *testing.T) {
	own := secret("clusters", "own", map[string]string{"token": "secret-9"})
	own.Type = corev1.SecretTypeServiceAccountToken
	own.Labels = map[string]string{"for": "fleet"}
	kubeconfig := newHub(t, own,
		secret("clusters", "c1", map[string]string{
			"token": "secret-1", "empty": " \n", "expired": jwt(`{"exp":1000000000}`),
		}),
		secret("elsewhere", "c1", map[string]string{"token": "secret-3"}),
	)
	for _, test := range []struct {
		name   string
		config string
		args   []string
		code   int
		stderr string
	}{
		{
			name:   "a namespace that no flag allows",
			config: `{"secretRef":{"namespace":"elsewhere","name":"c1"}}`,
			code:   plugin.ExitFailed,
			stderr: `secret elsewhere/c1: namespace "elsewhere" is not allowed, see --allowed-namespace`,
		},
		{
			name:   "the plugin's own namespace, if only others are allowed",
			config: `{"secretRef":{"name":"c1"}}`,
			args:   []string{"--allowed-namespace=elsewhere"},
			code:   plugin.ExitFailed,
			stderr: `secret clusters/c1: namespace "clusters" is not allowed, see --allowed-namespace`,
		},
		{
			name:   "a token for the hub itself",
			config: `{"secretRef":{"name":"own"}}`,
			code:   plugin.ExitFailed,
			stderr: `secret clusters/own: a Secret of type kubernetes.io/service-account-token has a token for the hub itself`,
		},
		{
			name:   "a Secret that the selector does not match",
			config: `{"secretRef":{"name":"c1"}}`,
			args:   []string{"--secret-selector=for=fleet"},
			code:   plugin.ExitFailed,
			stderr: `secret clusters/c1: the Secret's labels do not match --secret-selector`,
		},
		{
			name:   "a missing Secret",
			config: `{"clusterName":"c7"}`,
			code:   plugin.ExitFailed,
			stderr: `secret clusters/c7, key "token": the Secret does not exist`,
		},
		{
			name:   "a missing key",
			config: `{"secretRef":{"name":"c1","key":"nope"}}`,
			code:   plugin.ExitFailed,
			stderr: `secret clusters/c1, key "nope": the Secret has no such key`,
		},
		{
			name:   "an empty key",
			config: `{"secretRef":{"name":"c1","key":"empty"}}`,
			code:   plugin.ExitFailed,
			stderr: `secret clusters/c1, key "empty": the key is empty`,
		},
		{
			name:   "an expired token",
			config: `{"secretRef":{"name":"c1","key":"expired"}}`,
			code:   plugin.ExitFailed,
			stderr: `secret clusters/c1, key "expired": the token expired at 2001-09-09T01:46:40Z`,
		},
		{
			name:   "missing permissions",
			config: `{"secretRef":{"namespace":"sealed","name":"c1"}}`,
			args:   []string{"--allowed-namespace=sealed"},
			code:   plugin.ExitFailed,
			stderr: `secret sealed/c1: the plugin is not allowed to read the Secret: it needs the verb get on secrets in the namespace`,
		},
		{
			name:   "an unknown field of the config",
			config: `{"secretRef":{"nam":"c1"}}`,
			code:   plugin.ExitBadRequest,
			stderr: `unknown field "secretRef.nam"`,
		},
		{
			name:   "an empty config",
			config: `{}`,
			code:   plugin.ExitBadRequest,
			stderr: `secretRef must be given`,
		},
		{
			name:   "two forms",
			config: `{"clusterName":"c1","secretRef":{"name":"c1"}}`,
			code:   plugin.ExitBadRequest,
			stderr: `secretRef and clusterName are mutually exclusive`,
		},
		{
			name:   "a name that is a path",
			config: `{"clusterName":"../../nodes/n1"}`,
			code:   plugin.ExitBadRequest,
			stderr: `clusterName: `,
		},
		{
			name:   "a namespace that is a path",
			config: `{"secretRef":{"name":"c1","namespace":"clusters/secrets/x"}}`,
			code:   plugin.ExitBadRequest,
			stderr: `secretRef.namespace: `,
		},
		{
			name:   "an invalid selector",
			config: `{"clusterName":"c1"}`,
			args:   []string{"--secret-selector=a b"},
			code:   plugin.ExitUsage,
			stderr: `wrong flags: --secret-selector: `,
		},
		{
			name:   "an invalid namespace",
			config: `{"clusterName":"c1"}`,
			args:   []string{"--allowed-namespace=*"},
			code:   plugin.ExitUsage,
			stderr: `invalid value "*" for flag -allowed-namespace`,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			code, stdout, stderr := run(t, test.config, append(test.args, "--kubeconfig="+kubeconfig)...)
			g.Expect(stdout).To(BeEmpty())
			g.Expect(stderr).To(ContainSubstring(test.stderr))
			g.Expect(stderr).To(HavePrefix("mc-credential-token-secret: "))
			g.Expect(strings.Count(stderr, "\n")).To(Equal(1), "one line")
			g.Expect(stderr).NotTo(ContainSubstring("secret-"+"1"), "no data")
			g.Expect(code).To(Equal(test.code))
		})
	}
}

func TestSelectorAllowsServiceAccountTokens(t *testing.T) {
	g := NewWithT(t)
	own := secret("clusters", "own", map[string]string{"token": "secret-9"})
	own.Type = corev1.SecretTypeServiceAccountToken
	own.Labels = map[string]string{"for": "fleet"}
	kubeconfig := newHub(t, own)

	code, stdout, stderr := run(t, `{"clusterName":"own"}`, "--kubeconfig="+kubeconfig, "--secret-selector=for=fleet")
	g.Expect(stderr).To(BeEmpty())
	g.Expect(code).To(Equal(plugin.ExitOK))
	g.Expect(stdout).To(ContainSubstring(`"secret-9"`))
}

func TestHubMustBeKnown(t *testing.T) {
	g := NewWithT(t)
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	t.Setenv("KUBECONFIG", newHub(t, secret("clusters", "c1", map[string]string{"token": "secret-1"})))

	code, _, stderr := run(t, `{"clusterName":"c1"}`)
	g.Expect(code).To(Equal(plugin.ExitUsage), "KUBECONFIG is ignored")
	g.Expect(stderr).To(ContainSubstring("wrong flags: not in a cluster: --kubeconfig must be given"))

	code, _, stderr = run(t, `{"clusterName":"c1"}`, "--kubeconfig=/does/not/exist")
	g.Expect(code).To(Equal(plugin.ExitFailed))
	g.Expect(stderr).To(ContainSubstring("/does/not/exist"))
}

func TestHubRejectsThePlugin(t *testing.T) {
	g := NewWithT(t)
	kubeconfig := newHub(t)
	config, err := clientcmd.LoadFromFile(kubeconfig)
	g.Expect(err).NotTo(HaveOccurred())
	config.Contexts["hub"].AuthInfo = "stranger"
	g.Expect(clientcmd.WriteToFile(*config, kubeconfig)).To(Succeed())

	code, _, stderr := run(t, `{"clusterName":"c1"}`, "--kubeconfig="+kubeconfig)
	g.Expect(code).To(Equal(plugin.ExitFailed))
	g.Expect(stderr).To(ContainSubstring("the hub rejects the plugin's own credential"))
}
