// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package tokensecret_test

import (
	"cmp"
	"encoding/json"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/rollcall-dev/rollcall/pkg/credentials/plugin"
)

func TestTokenRequests(t *testing.T) {
	parent := jwt(`{"sub":"system:serviceaccount:fleet:controller"}`)
	for _, test := range []struct {
		name      string
		token     string
		args      []string
		seconds   int64
		audiences []string
		text      string // of the expected error
		code      int    // default: ExitFailed
	}{
		{name: "the token's own service account, for an hour", token: parent, seconds: 3600},
		{
			name: "audience and lifetime by flags", token: parent,
			args: []string{"--token-audience=a", "--token-audience=b", "--token-lifetime=15m"}, seconds: 900, audiences: []string{"a", "b"},
		},
		{name: "another service account by a flag", token: "opaque", args: []string{"--token-service-account=fleet/controller"}, seconds: 3600},
		{name: "an opaque token", token: "opaque", text: "the token does not name its service account, see --token-service-account"},
		{name: "a token of a user", token: jwt(`{"sub":"alice"}`), text: "the token does not name its service account"},
		{name: "a token whose subject is a path", token: jwt(`{"sub":"system:serviceaccount:../..:x"}`), text: "the token does not name its service account"},
		{name: "a token without the permission", token: parent, args: []string{"--token-service-account=kube-system/admin"}, text: "it needs the verb create on serviceaccounts/token for kube-system/admin"},
		{name: "a token that the member rejects", token: jwt(`{"sub":"system:serviceaccount:fleet:controller","x":1}`), text: "the member cluster rejects the credential"},
		{name: "a lifetime that is too short", token: parent, args: []string{"--token-lifetime=1m"}, text: "--token-lifetime: must be at least 10m", code: plugin.ExitUsage},
		{name: "an invalid service account", token: parent, args: []string{"--token-service-account=x"}, text: `--token-service-account: "x" is not namespace/name of a service account`, code: plugin.ExitUsage},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			accepted := parent
			if test.token == "opaque" {
				accepted = test.token
			}
			m := newMember(t, accepted)
			hub := newHub(t, secret("clusters", "c1", map[string]string{"token": test.token}))
			args := append([]string{"--kubeconfig=" + hub, "--request-token"}, test.args...)
			code, stdout, stderr := runFor(t, m.cluster(), `{"clusterName":"c1"}`, args...)
			g.Expect(stdout+stderr).NotTo(ContainSubstring(test.token), "the parent is not printed")
			if test.text != "" {
				g.Expect(code).To(Equal(cmp.Or(test.code, plugin.ExitFailed)))
				g.Expect(stderr).To(ContainSubstring(test.text))
				g.Expect(strings.Count(stderr, "\n")).To(Equal(1), "one line")
				return
			}
			g.Expect(stderr).To(BeEmpty())
			g.Expect(printed(t, stdout)).To(Equal(status{Token: "short-lived", ExpirationTimestamp: "2100-01-01T00:00:00Z"}))
			g.Expect(m.paths).To(Equal([]string{"POST /api/v1/namespaces/fleet/serviceaccounts/controller/token"}))
			g.Expect(m.requests[0].Kind).To(Equal("TokenRequest"))
			g.Expect(m.requests[0].Spec.ExpirationSeconds).To(Equal(ptr.To(test.seconds)))
			g.Expect(m.requests[0].Spec.Audiences).To(Equal(test.audiences))
		})
	}
}

func TestParentNeedsTLS(t *testing.T) {
	g := NewWithT(t)
	hub := newHub(t, secret("clusters", "c1", map[string]string{"token": "opaque"}))
	code, _, stderr := runFor(t, plugin.Cluster{Server: "http://c1"}, `{"clusterName":"c1"}`,
		"--kubeconfig="+hub, "--request-token", "--token-service-account=a/b")
	g.Expect(code).To(Equal(plugin.ExitBadRequest))
	g.Expect(stderr).To(ContainSubstring("the cluster's server is not an https URL"))
}

func TestParentNeedsTrustedServer(t *testing.T) {
	g := NewWithT(t)
	parent := jwt(`{"sub":"system:serviceaccount:fleet:controller"}`)
	m := newMember(t, parent)
	m.Config.ErrorLog = log.New(io.Discard, "", 0) // of the handshake that fails
	hub := newHub(t, secret("clusters", "c1", map[string]string{"token": parent}))
	cluster := m.cluster()
	cluster.CAData = nil
	code, _, _ := runFor(t, cluster, `{"clusterName":"c1"}`, "--kubeconfig="+hub, "--request-token")
	g.Expect(code).To(Equal(plugin.ExitFailed))
	g.Expect(m.paths).To(BeEmpty(), "its certificate is not trusted")
}

func TestTheParentFollowsNoRedirect(t *testing.T) {
	g := NewWithT(t)
	parent := jwt(`{"sub":"system:serviceaccount:fleet:controller"}`)
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, request *http.Request) {
		t.Errorf("a request to %s with %q", request.URL, request.Header.Get("Authorization"))
	}))
	t.Cleanup(elsewhere.Close)
	m := newMember(t, parent)
	m.Config.Handler = http.RedirectHandler(elsewhere.URL, http.StatusTemporaryRedirect)
	hub := newHub(t, secret("clusters", "c1", map[string]string{"token": parent}))
	code, stdout, stderr := runFor(t, m.cluster(), `{"clusterName":"c1"}`, "--kubeconfig="+hub, "--request-token")
	g.Expect(code).To(Equal(plugin.ExitFailed))
	g.Expect(stdout).To(BeEmpty())
	g.Expect(stderr).To(ContainSubstring("the server sent a redirect, which is not followed"))
}

func TestParentIsRedactedInErrors(t *testing.T) {
	g := NewWithT(t)
	m := newMember(t, "opaque-1")
	m.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		_ = json.NewEncoder(w).Encode(metav1.Status{
			TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure,
			Code: http.StatusBadRequest, Reason: metav1.StatusReasonBadRequest,
			Message: "do not like " + request.Header.Get("Authorization"),
		})
	})
	hub := newHub(t, secret("clusters", "c1", map[string]string{"token": "opaque-1"}))
	code, _, stderr := runFor(t, m.cluster(), `{"clusterName":"c1"}`,
		"--kubeconfig="+hub, "--request-token", "--token-service-account=fleet/controller")
	g.Expect(code).To(Equal(plugin.ExitFailed))
	g.Expect(stderr).To(ContainSubstring("do not like Bearer [redacted]"))
	g.Expect(stderr).NotTo(ContainSubstring("opaque-1"))
}

func TestExplain(t *testing.T) {
	g := NewWithT(t)
	hub := newHub(t)
	code, stdout, stderr := run(t, `{"secretRef":{"name":"c1"}}`, "--kubeconfig="+hub, "--explain", "--request-token", "--secret-selector=for=fleet", "--any-server=false")
	g.Expect(stderr).To(BeEmpty())
	g.Expect(code).To(Equal(plugin.ExitOK))
	for _, line := range []string{
		"read Secrets in these namespaces only: clusters",
		"reject Secrets whose labels do not match for=fleet",
		"reject tokens and client certificates of Secrets without the annotation rollcall.dev/server",
		"read secret clusters/c1",
		"request a token of service account that the Secret's token belongs to for 1h0m0s",
	} {
		g.Expect(stdout).To(ContainSubstring(line))
	}
	code, _, stderr = run(t, `{"secretRef":{"name":"c1","namespace":"elsewhere"}}`, "--kubeconfig="+hub, "--explain")
	g.Expect(code).To(Equal(plugin.ExitFailed))
	g.Expect(stderr).To(ContainSubstring(`namespace "elsewhere" is not allowed`))
}
