// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package credentials_test

import (
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"

	"github.com/rollcall-dev/rollcall/pkg/credentials"
	"github.com/rollcall-dev/rollcall/pkg/credentials/providerfile"
)

// onePlugin returns a resolver whose only provider is the plugin.
func onePlugin(t testing.TB, plugin *fakePlugin) *credentials.Resolver {
	t.Helper()
	return newResolver(t, credentials.Options{Providers: []providerfile.Provider{plugin.provider()}})
}

// getAll sends n requests at once and expects the status of each.
func getAll(t testing.TB, client *http.Client, url string, n, want int) {
	t.Helper()
	var group errgroup.Group
	for range n {
		group.Go(func() error {
			status, body, err := get(client, url)
			if err == nil && status != want {
				t.Errorf("status %d: %s", status, body)
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		t.Error(err)
	}
}

func TestOneRunForManyRequests(t *testing.T) {
	g := NewWithT(t)
	plugin, server := newFakePlugin(t), newServer(t, "Bearer t1")
	plugin.output("t1", future())
	client := httpClient(t, resolve(t, onePlugin(t, plugin), server.profile("c1")).RESTConfig())

	getAll(t, client, server.URL, 100, 200)
	g.Expect(plugin.runs()).To(HaveLen(1))
}

func TestOneRunForManyRequestsWith401(t *testing.T) {
	g := NewWithT(t)
	plugin, server := newFakePlugin(t), newServer(t, "Bearer t1")
	plugin.output("t1", future())
	client := httpClient(t, resolve(t, onePlugin(t, plugin), server.profile("c1")).RESTConfig())
	getAll(t, client, server.URL, 1, 200)

	plugin.output("t2", future())
	server.accept("Bearer t2")
	getAll(t, client, server.URL, 100, 200)
	g.Expect(plugin.runs()).To(HaveLen(2), "one run for all that used the old token")
}

func TestOneRunForEqualAccesses(t *testing.T) {
	g := NewWithT(t)
	plugin := newFakePlugin(t)
	plugin.output("t1", future())
	resolver := onePlugin(t, plugin)
	for range 5 {
		server := newServer(t, "Bearer t1")
		getAll(t, httpClient(t, resolve(t, resolver, server.profile("c")).RESTConfig()), server.URL, 1, 200)
	}
	g.Expect(plugin.runs()).To(HaveLen(1), "the plugin gets nothing of the cluster")
}

func TestRepeatedRequestHasItsBody(t *testing.T) {
	for _, test := range []struct {
		name   string
		body   io.Reader
		status int
	}{
		{"no body", nil, 200},
		{"a body that can be read again", strings.NewReader("world"), 200},
		{"a body that cannot", io.MultiReader(strings.NewReader("world")), 401},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			plugin, server := newFakePlugin(t), newServer(t, "Bearer t1")
			plugin.output("t1", future())
			client := httpClient(t, resolve(t, onePlugin(t, plugin), server.profile("c1")).RESTConfig())
			getAll(t, client, server.URL, 1, 200)
			plugin.output("t2", future())
			server.accept("Bearer t2")

			request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, test.body)
			g.Expect(err).NotTo(HaveOccurred())
			response, err := client.Do(request)
			g.Expect(err).NotTo(HaveOccurred())
			body, err := io.ReadAll(response.Body)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(response.Body.Close()).To(Succeed())
			g.Expect(response.StatusCode).To(Equal(test.status))
			g.Expect(request.Header).NotTo(HaveKey("Authorization"), "the caller's request is not changed")
			if test.status == 200 && test.body != nil {
				g.Expect(string(body)).To(Equal("hello world"))
			}
			// In each case the new token is there for what follows.
			g.Eventually(func() int { return len(plugin.runs()) }).Should(Equal(2))
			getAll(t, client, server.URL, 10, 200)
			g.Expect(plugin.runs()).To(HaveLen(2))
		})
	}
}

func TestUnauthorizedWithSameToken(t *testing.T) {
	g := NewWithT(t)
	plugin, server := newFakePlugin(t), newServer(t)
	plugin.output("t1", future())
	client := httpClient(t, resolve(t, onePlugin(t, plugin), server.profile("c1")).RESTConfig())

	getAll(t, client, server.URL, 1, 401)
	g.Expect(server.identities()).To(HaveLen(1), "not repeated with the same token")
	g.Expect(plugin.runs()).To(HaveLen(2))
	getAll(t, client, server.URL, 20, 401)
	g.Expect(plugin.runs()).To(HaveLen(2), "nor is the plugin run again at once")
}

func TestRunAfterUnauthorizedIsLogged(t *testing.T) {
	for _, test := range []struct {
		name    string
		change  func(*fakePlugin)
		outcome string
	}{
		{"with another token", func(p *fakePlugin) { p.output("s3cret-2", future()) }, "another credential"},
		{"with the same token", func(*fakePlugin) {}, "the same credential"},
		{"without a token", func(p *fakePlugin) { p.set("code", "1") }, "no credential"},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			var log syncBuffer
			plugin, server := newFakePlugin(t), newServer(t, "Bearer s3cret-1")
			plugin.output("s3cret-1", future())
			resolver := newResolver(t, credentials.Options{Providers: []providerfile.Provider{plugin.provider()}, Logger: log.logger()})
			client := httpClient(t, resolve(t, resolver, server.profile("c1")).RESTConfig())
			getAll(t, client, server.URL, 1, 200)
			g.Expect(log.String()).To(BeEmpty())

			server.accept("Bearer s3cret-2")
			test.change(plugin)
			_, _, err := get(client, server.URL)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(log.String()).To(MatchRegexp(`"level"=1 "msg"="Server refused the credential, running the plugin again" "provider"="fake"`))
			g.Expect(log.String()).To(ContainSubstring(`"Ran the plugin for a refused credential" "provider"="fake"`))
			g.Expect(log.String()).To(ContainSubstring(`"outcome"="` + test.outcome + `"`))
			g.Expect(log.String()).NotTo(ContainSubstring("s3cret"))
		})
	}
}

func TestUnauthorizedWithNewTokens(t *testing.T) {
	g := NewWithT(t)
	plugin, server := newFakePlugin(t), newServer(t)
	plugin.output("t1", future())
	client := httpClient(t, resolve(t, onePlugin(t, plugin), server.profile("c1")).RESTConfig())
	for _, token := range []string{"t2", "t3", "t4", "t5"} {
		getAll(t, client, server.URL, 1, 401)
		plugin.output(token, future())
	}
	g.Expect(len(plugin.runs())).To(BeNumerically("<=", 3))
}

func TestCallerSettingsAreKept(t *testing.T) {
	g := NewWithT(t)
	plugin, server := newFakePlugin(t), newServer(t, "Bearer mine", "Bearer t1")
	plugin.output("t1", future())
	access := resolve(t, onePlugin(t, plugin), server.profile("c1"))

	config := access.RESTConfig()
	config.BearerToken = "mine"
	getAll(t, httpClient(t, config), server.URL, 1, 200)
	g.Expect(plugin.runs()).To(BeEmpty(), "a request that is authorized already needs no plugin")

	config = access.RESTConfig()
	g.Expect(config.QPS).To(BeEquivalentTo(-1), "the API server's own fairness governs")
	config.UserAgent = "me/1"
	config.Impersonate.UserName = "someone"
	var got http.Header
	config.Wrap(func(base http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) {
			got = request.Header
			return base.RoundTrip(request)
		})
	})
	getAll(t, httpClient(t, config), server.URL, 1, 200)
	g.Expect(got.Get("User-Agent")).To(Equal("me/1"))
	g.Expect(got.Get("Impersonate-User")).To(Equal("someone"))
	g.Expect(got).NotTo(HaveKey("Authorization"), "the token is added on a copy, nearest to the connection")
	g.Expect(access.RESTConfig().UserAgent).To(BeEmpty(), "each copy is a fresh one")
}

func TestCallerTransportIsUsed(t *testing.T) {
	g := NewWithT(t)
	plugin, server := newFakePlugin(t), newServer(t, "Bearer t1")
	plugin.output("t1", future())
	config := resolve(t, onePlugin(t, plugin), server.profile("c1")).RESTConfig()

	// This is how client-go upgrades connections for "exec" and "port-forward".
	wrapped, err := rest.HTTPWrappersForConfig(config, roundTripper(func(request *http.Request) (*http.Response, error) {
		g.Expect(request.Header.Get("Authorization")).To(Equal("Bearer t1"))
		return &http.Response{StatusCode: http.StatusSwitchingProtocols, Body: http.NoBody}, nil
	}))
	g.Expect(err).NotTo(HaveOccurred())
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, nil)
	g.Expect(err).NotTo(HaveOccurred())
	response, err := wrapped.RoundTrip(request)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(response.Body.Close()).To(Succeed())
	g.Expect(response.StatusCode).To(Equal(http.StatusSwitchingProtocols))
	g.Expect(server.identities()).To(BeEmpty())
}

func TestTokenIsSentToItsServerOnly(t *testing.T) {
	g := NewWithT(t)
	plugin, server, evil := newFakePlugin(t), newServer(t, "Bearer t1"), newServer(t)
	plugin.output("t1", future())
	client := httpClient(t, resolve(t, onePlugin(t, plugin), server.profile("c1")).RESTConfig())

	_, _, err := get(client, evil.URL)
	g.Expect(err).To(MatchError(credentials.ErrDenied))
	_, _, err = get(client, strings.Replace(server.URL, "https:", "http:", 1))
	g.Expect(err).To(MatchError(credentials.ErrDenied))
	g.Expect(plugin.runs()).To(BeEmpty())
	g.Expect(evil.identities()).To(BeEmpty())
}

func TestRedirectGetsNoCredential(t *testing.T) {
	plugin, server, evil := newFakePlugin(t), newServer(t, "Bearer t1"), newServer(t)
	plugin.output("t1", future())
	for _, target := range []string{evil.URL, strings.Replace(server.URL, "https:", "http:", 1)} {
		g := NewWithT(t)
		redirecting := httptest.NewTLSServer(http.RedirectHandler(target, http.StatusTemporaryRedirect))
		t.Cleanup(redirecting.Close)
		profile := profileOf("c1", clientcmdv1.Cluster{Server: redirecting.URL, CertificateAuthorityData: pem.EncodeToMemory(
			&pem.Block{Type: "CERTIFICATE", Bytes: redirecting.Certificate().Raw},
		)})
		client := httpClient(t, resolve(t, onePlugin(t, plugin), profile).RESTConfig())
		_, _, err := get(client, redirecting.URL)
		g.Expect(err).To(MatchError(credentials.ErrDenied))
		g.Expect(evil.identities()).To(BeEmpty())
		g.Expect(server.identities()).To(BeEmpty())
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }
