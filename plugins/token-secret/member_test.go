// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package tokensecret_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/rollcall-dev/rollcall/pkg/credentials/plugin"
	tokensecret "github.com/rollcall-dev/rollcall/plugins/token-secret"
)

// member is an API server that issues tokens.
type member struct {
	*httptest.Server
	requests []authenticationv1.TokenRequest
	paths    []string
}

// newMember accepts one token as the parent of others.
func newMember(t *testing.T, parent string) *member {
	t.Helper()
	m := &member{}
	m.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		refuse := func(code int32, reason metav1.StatusReason) {
			w.WriteHeader(int(code))
			_ = json.NewEncoder(w).Encode(metav1.Status{
				TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
				Status:   metav1.StatusFailure, Code: code, Reason: reason,
			})
		}
		m.paths = append(m.paths, request.Method+" "+request.URL.Path)
		var received authenticationv1.TokenRequest
		if err := json.NewDecoder(request.Body).Decode(&received); err != nil {
			t.Error(err)
		}
		m.requests = append(m.requests, received)
		switch {
		case request.Header.Get("Authorization") != "Bearer "+parent:
			refuse(http.StatusUnauthorized, metav1.StatusReasonUnauthorized)
			return
		case request.URL.Path != "/api/v1/namespaces/fleet/serviceaccounts/controller/token":
			refuse(http.StatusForbidden, metav1.StatusReasonForbidden)
			return
		}
		received.Status = authenticationv1.TokenRequestStatus{
			Token:               "short-lived",
			ExpirationTimestamp: metav1.NewTime(time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)),
		}
		w.WriteHeader(http.StatusCreated)
		_ = json.NewEncoder(w).Encode(received)
	}))
	t.Cleanup(m.Close)
	return m
}

func (m *member) ca() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: m.Certificate().Raw})
}

// cluster is the cluster in the profile of the member.
func (m *member) cluster() plugin.Cluster {
	return plugin.Cluster{Server: m.URL, CAData: m.ca()}
}

// runFor runs the plugin for a cluster.
func runFor(t *testing.T, cluster plugin.Cluster, config string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	cluster.Config = json.RawMessage(config)
	spec, err := json.Marshal(map[string]any{"cluster": cluster})
	if err != nil {
		t.Fatal(err)
	}
	info := fmt.Sprintf(`{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","spec":%s}`, spec)
	var out, errs bytes.Buffer
	code = plugin.Run(t.Context(), tokensecret.New(), append([]string{"--any-server"}, args...), []string{"KUBERNETES_EXEC_INFO=" + info}, &out, &errs)
	return code, out.String(), errs.String()
}

// status is the status of the plugin's output.
type status struct {
	Token                 string `json:"token"`
	ClientCertificateData string `json:"clientCertificateData"`
	ClientKeyData         string `json:"clientKeyData"`
	ExpirationTimestamp   string `json:"expirationTimestamp"`
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

func newCertificate(t testing.TB, notAfter time.Time) (certificate, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		Subject:      pkix.Name{CommonName: "controller"},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     notAfter,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})),
		string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}))
}

// kubeconfigOf returns a kubeconfig with one context "main", after the change.
func kubeconfigOf(t testing.TB, server string, ca []byte, change func(*clientcmdapi.Cluster, *clientcmdapi.AuthInfo)) string {
	t.Helper()
	config := clientcmdapi.NewConfig()
	config.Clusters["c"] = &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: ca}
	config.AuthInfos["u"] = &clientcmdapi.AuthInfo{}
	config.Contexts["main"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	config.CurrentContext = "main"
	change(config.Clusters["c"], config.AuthInfos["u"])
	data, err := clientcmd.Write(*config)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
