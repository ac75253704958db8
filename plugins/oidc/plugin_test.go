// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package oidc_test

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
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"go.uber.org/goleak"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/rollcall-dev/rollcall/pkg/credentials/plugin"
	"github.com/rollcall-dev/rollcall/plugins/oidc"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	memberURL   = "https://c1.example.com:6443"
	hubAudience = "https://hub.example.com"
)

// ownToken is the plugin's token for the hub.
var ownToken = jwt(`{"sub":"system:serviceaccount:fleet:members"}`)

// hub issues tokens of service account fleet/members.
type hub struct {
	*httptest.Server
	issue func(audiences []string, expiry time.Time) string

	mu       sync.Mutex // guards requests
	requests []authenticationv1.TokenRequestSpec
}

func newHub(t *testing.T) *hub {
	t.Helper()
	h := &hub{issue: issue}
	h.Server = httptest.NewTLSServer(h)
	t.Cleanup(h.Close)
	return h
}

func issue(audiences []string, expiry time.Time) string {
	aud, _ := json.Marshal(audiences)
	return jwt(fmt.Sprintf(`{"sub":"system:serviceaccount:fleet:members","aud":%s,"exp":%d}`, aud, expiry.Unix()))
}

func (h *hub) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	refuse := func(code int32, reason metav1.StatusReason) {
		w.WriteHeader(int(code))
		_ = json.NewEncoder(w).Encode(metav1.Status{
			TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
			Status:   metav1.StatusFailure, Code: code, Reason: reason,
		})
	}
	var received authenticationv1.TokenRequest
	switch {
	case request.Header.Get("Authorization") != "Bearer "+ownToken:
		refuse(http.StatusUnauthorized, metav1.StatusReasonUnauthorized)
		return
	case strings.HasPrefix(request.URL.Path, "/api/v1/namespaces/kube-system/"):
		refuse(http.StatusForbidden, metav1.StatusReasonForbidden)
		return
	case request.Method+request.URL.Path != "POST/api/v1/namespaces/fleet/serviceaccounts/members/token":
		refuse(http.StatusNotFound, metav1.StatusReasonNotFound)
		return
	case json.NewDecoder(request.Body).Decode(&received) != nil:
		refuse(http.StatusBadRequest, metav1.StatusReasonBadRequest)
		return
	}
	h.mu.Lock()
	h.requests = append(h.requests, *received.Spec.DeepCopy())
	h.mu.Unlock()
	if len(received.Spec.Audiences) == 0 {
		received.Spec.Audiences = []string{hubAudience, "api"}
	}
	expiry := time.Now().Add(time.Duration(*received.Spec.ExpirationSeconds) * time.Second)
	received.Status.Token = h.issue(received.Spec.Audiences, expiry)
	received.Status.ExpirationTimestamp = metav1.NewTime(expiry)
	w.WriteHeader(http.StatusCreated)
	_ = json.NewEncoder(w).Encode(received)
}

// kubeconfig returns the path of a kubeconfig with the token.
func (h *hub) kubeconfig(t *testing.T, token string) string {
	t.Helper()
	config := clientcmdapi.NewConfig()
	config.Clusters["hub"] = &clientcmdapi.Cluster{
		Server:                   h.URL,
		CertificateAuthorityData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: h.Certificate().Raw}),
	}
	config.AuthInfos["me"] = &clientcmdapi.AuthInfo{Token: token}
	config.Contexts["hub"] = &clientcmdapi.Context{Cluster: "hub", AuthInfo: "me"}
	config.CurrentContext = "hub"
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}
	return path
}

func jwt(claims string) string {
	encode := base64.RawURLEncoding.EncodeToString
	return encode([]byte(`{"alg":"none"}`)) + "." + encode([]byte(claims)) + "." + encode([]byte("signature"))
}

// run runs the plugin for a cluster, whose config names the audience.
func run(t *testing.T, cluster plugin.Cluster, audience string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var err error
	if cluster.Config, err = json.Marshal(map[string]string{"audience": audience}); err != nil {
		t.Fatal(err)
	}
	return runRequest(t, map[string]any{"cluster": cluster}, args...)
}

func runRequest(t *testing.T, spec any, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	info, err := json.Marshal(map[string]any{"kind": "ExecCredential", "apiVersion": "client.authentication.k8s.io/v1", "spec": spec})
	if err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	code = plugin.Run(t.Context(), oidc.New(), args, []string{"KUBERNETES_EXEC_INFO=" + string(info)}, &out, &errs)
	return code, out.String(), errs.String()
}

type status struct {
	Token               string    `json:"token"`
	ExpirationTimestamp time.Time `json:"expirationTimestamp"`
}

func printed(t *testing.T, stdout string) status {
	t.Helper()
	var output struct {
		Status status `json:"status"`
	}
	if err := json.Unmarshal([]byte(stdout), &output); err != nil {
		t.Fatalf("%v in %q", err, stdout)
	}
	return output.Status
}

func audiencesOf(t *testing.T, token string) []string {
	t.Helper()
	payload, err := base64.RawURLEncoding.DecodeString(strings.Split(token, ".")[1])
	if err != nil {
		t.Fatal(err)
	}
	var claims struct {
		Audiences []string `json:"aud"`
	}
	if err := json.Unmarshal(payload, &claims); err != nil {
		t.Fatal(err)
	}
	return claims.Audiences
}

func TestTokens(t *testing.T) {
	for _, test := range []struct {
		name     string
		server   string // default: memberURL
		audience string // default: memberURL
		args     []string
		lifetime time.Duration // default: 1 h
		requests int
	}{
		{name: "the URL of the server", requests: 2},
		{name: "another spelling of the server", server: "https://C1.example.com:06443/", audience: "https://c1.example.com:06443", requests: 2},
		{name: "the default port", server: "https://C1.example.com:443/", audience: "https://c1.example.com", requests: 2},
		{name: "a path", server: memberURL + "/clusters/c1/", audience: memberURL + "/clusters/c1", requests: 2},
		{name: "the hub's audiences by a flag", args: []string{"--hub-audience=" + hubAudience}, requests: 1},
		{name: "a lifetime", args: []string{"--token-lifetime=15m"}, lifetime: 15 * time.Minute, requests: 2},
		{name: "the service account by a flag", args: []string{"--service-account=fleet/members"}, requests: 2},
		{name: "an audience for this server", audience: "c1", args: []string{"--allowed-audience=c2=https://c2", "--allowed-audience=c1=https://C1.example.com:6443/"}, requests: 2},
		{name: "an audience with a part of the server", audience: "fleet-c1", args: []string{"--allowed-audience=fleet-*=https://*.example.com:6443"}, requests: 2},
		{name: "an audience for any server", audience: "team-a-c1", args: []string{"--allowed-audience=team-a-*=*"}, requests: 2},
		{name: "one audience for any server", audience: "c1", args: []string{"--allowed-audience=c1=*"}, requests: 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			h := newHub(t)
			server, audience, lifetime := memberURL, memberURL, time.Hour
			if test.server != "" {
				server = test.server
			}
			if test.audience != "" {
				audience = test.audience
			}
			if test.lifetime != 0 {
				lifetime = test.lifetime
			}
			code, stdout, stderr := run(t, plugin.Cluster{Server: server}, audience, append(test.args, "--kubeconfig="+h.kubeconfig(t, ownToken))...)
			g.Expect(stderr).To(BeEmpty())
			g.Expect(code).To(Equal(plugin.ExitOK))
			output := printed(t, stdout)
			g.Expect(audiencesOf(t, output.Token)).To(Equal([]string{audience}))
			g.Expect(output.ExpirationTimestamp).To(BeTemporally("~", time.Now().Add(lifetime), 10*time.Second))
			g.Expect(h.requests).To(HaveLen(test.requests))
		})
	}
}

func TestRefusals(t *testing.T) {
	const rule = "--allowed-audience=c1=" + memberURL
	for _, test := range []struct {
		name     string
		cluster  plugin.Cluster // default server: memberURL
		audience string         // default: c1
		args     []string       // default: rule
		own      string         // default: ownToken
		issue    func(audiences []string, expiry time.Time) string
		code     int // default: ExitFailed
		text     string
	}{
		{name: "another member's audience", audience: "https://c2.example.com", args: []string{"--hub-audience=h"}, text: `audience "https://c2.example.com" is not allowed for server https://c1.example.com:6443, whose audience is "https://c1.example.com:6443"`},
		{name: "a server of the author's", cluster: plugin.Cluster{Server: "https://evil.example.com"}, text: `audience "c1" is not allowed for server https://evil.example.com, see --allowed-audience`},
		{name: "a server that has the text of another", cluster: plugin.Cluster{Server: "https://evil.org/x.example.com"}, audience: "fleet-x", args: []string{"--allowed-audience=fleet-*=https://*.example.com"}, text: `whose audience is "fleet-evil.org/x"`},
		{name: "nothing for the *", cluster: plugin.Cluster{Server: "https://.example.com"}, audience: "fleet-", args: []string{"--allowed-audience=fleet-*=https://*.example.com"}, text: "is not allowed for server"},
		{name: "an audience that no flag allows for any server", audience: "team-b-c1", args: []string{"--allowed-audience=team-a-*=*"}, text: `audience "team-b-c1" is not allowed`},
		{name: "no verification", cluster: plugin.Cluster{InsecureSkipTLSVerify: true}, text: "the profile does not verify the server's certificate"},
		{name: "another server name", cluster: plugin.Cluster{TLSServerName: "evil"}, text: "the profile has a tls-server-name"},
		{name: "a proxy", cluster: plugin.Cluster{ProxyURL: "http://evil"}, text: "the profile has a proxy-url"},
		{name: "the hub's audience", audience: hubAudience, args: []string{"--allowed-audience=*=*"}, text: `audience "https://hub.example.com" is one of the hub's own API server`},
		{name: "the second audience of the hub", audience: "api", args: []string{"--allowed-audience=*=*"}, text: `audience "api" is one of the hub's own API server`},
		{name: "the hub's audience and server", cluster: plugin.Cluster{Server: hubAudience}, audience: hubAudience, args: []string{"--allowed-audience=https://*=https://*"}, text: "is one of the hub's own API server"},
		{name: "the hub's audience of a flag", audience: "x", args: []string{"--allowed-audience=*=*", "--hub-audience=y", "--hub-audience=x"}, text: `audience "x" is one of the hub's own API server`},
		{name: "an unencrypted server", cluster: plugin.Cluster{Server: "http://c1.example.com:6443"}, args: []string{"--allowed-audience=*=*"}, code: plugin.ExitBadRequest, text: "the cluster's server is not an https URL"},
		{name: "an audience with a space", audience: "c 1", code: plugin.ExitBadRequest, text: "config of the cluster: audience must have only visible ASCII characters"},
		{name: "a long audience", audience: strings.Repeat("a", 1025), code: plugin.ExitBadRequest, text: "audience must not be longer than 1024 bytes"},
		{name: "a service account that does not exist", args: []string{rule, "--service-account=fleet/x"}, text: "service account fleet/x does not exist in the hub"},
		{name: "a service account without permission", args: []string{rule, "--service-account=kube-system/x"}, text: "it needs the verb create on serviceaccounts/token"},
		{name: "an invalid service account", args: []string{rule, "--service-account=x"}, code: plugin.ExitUsage, text: `--service-account: "x" is not namespace/name of a service account`},
		{name: "a credential that the hub rejects", own: jwt(`{"sub":"system:serviceaccount:fleet:members","x":1}`), text: "the hub rejects the plugin's own credential"},
		{name: "an own token that is not a JWT", own: "opaque", code: plugin.ExitUsage, text: "--service-account must be given"},
		{name: "an own token of a user", own: jwt(`{"sub":"alice"}`), code: plugin.ExitUsage, text: "--service-account must be given"},
		{name: "a subject that is a path", own: jwt(`{"sub":"system:serviceaccount:../..:x"}`), code: plugin.ExitUsage, text: "--service-account must be given"},
		{name: "a short lifetime", args: []string{rule, "--token-lifetime=1m"}, code: plugin.ExitUsage, text: "--token-lifetime: must be at least 10m"},
		{name: "a rule without a server", args: []string{"--allowed-audience=c1"}, code: plugin.ExitUsage, text: "must be AUDIENCE=SERVER"},
		{name: "a rule for an unencrypted server", args: []string{"--allowed-audience=c1=http://c1"}, code: plugin.ExitUsage, text: "must be AUDIENCE=SERVER"},
		{name: "a rule with a * in the audience only", args: []string{"--allowed-audience=*=https://c1"}, code: plugin.ExitUsage, text: "the server must have one * if the audience has one"},
		{name: "a rule with a * in the server only", args: []string{"--allowed-audience=c1=https://*.example.com"}, code: plugin.ExitUsage, text: "the server must have one * if the audience has one"},
		{name: "a rule with several *", args: []string{"--allowed-audience=*-*=*"}, code: plugin.ExitUsage, text: "must not have more than one *"},
		{name: "a rule without an audience", args: []string{"--allowed-audience==https://c1"}, code: plugin.ExitUsage, text: "the audience must be given"},
		{name: "a hub that ignores the audience", issue: func(_ []string, expiry time.Time) string { return issue([]string{hubAudience}, expiry) }, text: `the token is for audience "https://hub.example.com", it must be for audience "c1" only`},
		{name: "a hub that adds an audience", issue: func(a []string, expiry time.Time) string { return issue(append(a, "c2"), expiry) }, text: `the token is for audiences ["c1" "c2"], it must be for audience "c1" only`},
		{name: "a hub that issues expired tokens", issue: func(a []string, _ time.Time) string { return issue(a, time.Unix(1e9, 0)) }, text: "the token expired at 2001-09-09T01:46:40Z: check the clocks"},
		{name: "a hub that issues other tokens", issue: func([]string, time.Time) string { return "opaque-1" }, text: "the token is not a JSON Web Token"},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			h := newHub(t)
			if test.issue != nil {
				h.issue = test.issue
			}
			if test.cluster.Server == "" {
				test.cluster.Server = memberURL
			}
			audience, args, own, expected := "c1", []string{rule}, ownToken, plugin.ExitFailed
			if test.audience != "" {
				audience = test.audience
			}
			if test.args != nil {
				args = test.args
			}
			if test.own != "" {
				own = test.own
			}
			if test.code != 0 {
				expected = test.code
			}
			code, stdout, stderr := run(t, test.cluster, audience, append(args, "--kubeconfig="+h.kubeconfig(t, own))...)
			g.Expect(stdout).To(BeEmpty())
			g.Expect(stderr).To(ContainSubstring(test.text))
			g.Expect(stderr).To(HavePrefix("mc-credential-oidc: "))
			g.Expect(strings.Count(stderr, "\n")).To(Equal(1), "one line")
			g.Expect(stderr).NotTo(ContainSubstring("opaque-1"))
			g.Expect(code).To(Equal(expected))
			for _, request := range h.requests {
				if test.issue == nil {
					g.Expect(request.Audiences).To(BeEmpty(), "no token is requested that is not printed")
				}
			}
		})
	}
}

func TestConfigs(t *testing.T) {
	g := NewWithT(t)
	for config, text := range map[string]string{
		`{}`:                             "audience must be given",
		`{"audience":["c1"]}`:            `field "audience" must not be of type array`,
		`{"audience":"c1","server":"x"}`: `unknown field "server"`,
	} {
		cluster := plugin.Cluster{Server: memberURL, Config: json.RawMessage(config)}
		code, _, stderr := runRequest(t, map[string]any{"cluster": cluster})
		g.Expect(code).To(Equal(plugin.ExitBadRequest))
		g.Expect(stderr).To(ContainSubstring(text))
	}
	code, _, stderr := runRequest(t, map[string]any{})
	g.Expect(code).To(Equal(plugin.ExitBadRequest))
	g.Expect(stderr).To(ContainSubstring("provideClusterInfo must be set"))
}

func TestHubMustBeKnown(t *testing.T) {
	g := NewWithT(t)
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	t.Setenv("KUBECONFIG", newHub(t).kubeconfig(t, ownToken))
	code, _, stderr := run(t, plugin.Cluster{Server: memberURL}, memberURL)
	g.Expect(code).To(Equal(plugin.ExitUsage), "KUBECONFIG is ignored")
	g.Expect(stderr).To(ContainSubstring("not in a cluster: --kubeconfig or --token-file must be given"))
}

func TestRedirectIsNotFollowed(t *testing.T) {
	g := NewWithT(t)
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, request *http.Request) {
		t.Errorf("a request to %s with %q", request.URL, request.Header.Get("Authorization"))
	}))
	t.Cleanup(elsewhere.Close)
	h := newHub(t)
	h.Config.Handler = http.RedirectHandler(elsewhere.URL, http.StatusTemporaryRedirect)
	code, _, stderr := run(t, plugin.Cluster{Server: memberURL}, memberURL, "--kubeconfig="+h.kubeconfig(t, ownToken))
	g.Expect(code).To(Equal(plugin.ExitFailed))
	g.Expect(stderr).To(ContainSubstring("the server sent a redirect, which is not followed"))
}

func TestOwnTokenFromFile(t *testing.T) {
	g := NewWithT(t)
	h := newHub(t)
	path := h.kubeconfig(t, "")
	config, err := clientcmd.LoadFromFile(path)
	g.Expect(err).NotTo(HaveOccurred())
	config.AuthInfos["me"].TokenFile = filepath.Join(t.TempDir(), "token")
	g.Expect(os.WriteFile(config.AuthInfos["me"].TokenFile, []byte(ownToken+"\n"), 0o600)).To(Succeed())
	g.Expect(clientcmd.WriteToFile(*config, path)).To(Succeed())
	_, stdout, stderr := run(t, plugin.Cluster{Server: memberURL}, memberURL, "--kubeconfig="+path)
	g.Expect(stderr).To(BeEmpty())
	g.Expect(audiencesOf(t, printed(t, stdout).Token)).To(Equal([]string{memberURL}))
}

func TestExplain(t *testing.T) {
	g := NewWithT(t)
	h := newHub(t)
	args := []string{"--kubeconfig=" + h.kubeconfig(t, ownToken), "--allowed-audience=c1=" + memberURL, "--explain"}
	code, stdout, stderr := run(t, plugin.Cluster{Server: memberURL}, "c1", args...)
	g.Expect(stderr).To(BeEmpty())
	g.Expect(code).To(Equal(plugin.ExitOK))
	for _, line := range []string{
		"allow audience c1 for " + memberURL,
		"refuse the hub's own audiences: those that it reports",
		"request a token of service account fleet/members with audience c1 for 1h0m0s",
	} {
		g.Expect(stdout).To(ContainSubstring(line))
	}
	code, _, stderr = run(t, plugin.Cluster{Server: "https://evil"}, "c1", args...)
	g.Expect(code).To(Equal(plugin.ExitFailed))
	g.Expect(stderr).To(ContainSubstring(`audience "c1" is not allowed for server https://evil`))
	g.Expect(h.requests).To(BeEmpty(), "nothing is sent")

	_, stdout, stderr = runRequest(t, map[string]any{}, args...)
	g.Expect(stderr).To(BeEmpty())
	g.Expect(stdout).To(ContainSubstring("with audience of the profile for"))
}
