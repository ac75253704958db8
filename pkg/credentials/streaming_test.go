// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package credentials_test

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync/atomic"
	"testing"

	. "github.com/onsi/gomega"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"

	"github.com/rollcall-dev/rollcall/pkg/credentials"
	"github.com/rollcall-dev/rollcall/pkg/inventory"
)

// upgrader stands for the transports of client-go for SPDY and websockets, which
// are made of a configuration as here. It has connections of its own.
type upgrader struct {
	http.RoundTripper
	tls *tls.Config
}

// TLSClientConfig implements utilnet.TLSClientConfigHolder.
func (u *upgrader) TLSClientConfig() *tls.Config { return u.tls }

func newUpgrader(config *rest.Config) (http.RoundTripper, error) {
	tlsConfig, err := rest.TLSConfigFor(config)
	if err != nil {
		return nil, err
	}
	own := &http.Transport{TLSClientConfig: tlsConfig, DisableKeepAlives: true}
	return rest.HTTPWrappersForConfig(config, &upgrader{own, tlsConfig})
}

// lastIdentity returns who the last request claimed to be.
func (s *server) lastIdentity() string {
	all := s.identities()
	if len(all) == 0 {
		return ""
	}
	return all[len(all)-1]
}

// stream makes an upgrader of the configuration and sends a request.
func stream(t *testing.T, config *rest.Config, url string) error {
	t.Helper()
	rt, err := newUpgrader(config)
	if err != nil {
		t.Fatal(err)
	}
	return streamBy(t, rt, url)
}

func streamBy(t *testing.T, rt http.RoundTripper, url string) error {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/api/v1/pods/exec", nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := rt.RoundTrip(request)
	if err == nil {
		_ = response.Body.Close()
	}
	return err
}

func TestStreamsOfHeldConfig(t *testing.T) {
	g := NewWithT(t)
	plugin, a, b := newFakePlugin(t), newServer(t, "one", "two"), newServer(t, "two", "three", "Bearer t")
	plugin.outputCertificate("one", future())
	resolver := onePlugin(t, plugin)
	access := resolve(t, resolver, a.profile("c1"))
	held := access.RESTConfig()
	_ = stream(t, held, a.URL)
	g.Expect(a.lastIdentity()).To(Equal("one"), "also before the first other request")

	// Another cluster with the same credential causes a new certificate.
	plugin.outputCertificate("two", future())
	getAll(t, httpClient(t, resolve(t, resolver, b.profile("c2")).RESTConfig()), b.URL, 1, 200)
	_ = stream(t, held, a.URL)
	g.Expect(a.lastIdentity()).To(Equal("two"))

	// To a server with another certificate authority and another path.
	other := newFakePlugin(t)
	other.outputCertificate("three", future())
	profile := b.profile("c1")
	profile.Status.AccessProviders[0].Cluster.Server += "/clusters/7"
	g.Expect(access.Switch(resolve(t, onePlugin(t, other), profile))).To(Succeed())
	_ = stream(t, held, a.URL)
	g.Expect(b.lastIdentity()).To(Equal("three"))
	_ = stream(t, access.RESTConfig(), b.URL+"/clusters/7")
	g.Expect(b.lastIdentity()).To(Equal("three"))

	// To a configuration with a token.
	static := credentials.FromRESTConfig(&rest.Config{Host: b.URL, BearerToken: "t", TLSClientConfig: rest.TLSClientConfig{CAData: b.ca()}})
	g.Expect(access.Switch(static)).To(Succeed())
	_ = stream(t, held, a.URL)
	g.Expect(b.lastIdentity()).To(Equal("Bearer t"))

	// And back.
	g.Expect(access.Switch(resolve(t, resolver, a.profile("c1")))).To(Succeed())
	_ = stream(t, held, a.URL)
	g.Expect(a.lastIdentity()).To(Equal("two"))
}

func TestStreamsOfHeldExecutor(t *testing.T) {
	g := NewWithT(t)
	plugin, other, s := newFakePlugin(t), newFakePlugin(t), newServer(t, "one", "two", "Bearer t")
	plugin.outputCertificate("one", future())
	other.outputCertificate("two", future())
	profile := s.profile("c1")
	access := resolve(t, onePlugin(t, plugin), profile)
	held, err := newUpgrader(access.RESTConfig())
	g.Expect(err).NotTo(HaveOccurred())
	_ = streamBy(t, held, s.URL)
	g.Expect(s.lastIdentity()).To(Equal("one"))

	// The same server and authorities, with the credential of another plugin.
	g.Expect(access.Switch(resolve(t, onePlugin(t, other), profile))).To(Succeed())
	_ = streamBy(t, held, s.URL)
	g.Expect(s.lastIdentity()).To(Equal("two"))

	other.output("t", future())
	s.accept("Bearer t")
	_ = streamBy(t, held, s.URL)
	g.Expect(s.lastIdentity()).To(Equal("Bearer t"))
}

func TestStreamsOfStaticConfig(t *testing.T) {
	g := NewWithT(t)
	plugin, a, b := newFakePlugin(t), newServer(t, "one"), newServer(t, "two")
	plugin.outputCertificate("one", future())
	config := &rest.Config{Host: a.URL, TLSClientConfig: rest.TLSClientConfig{CAData: a.ca()}, ExecProvider: plugin.provider().ExecConfig}
	config.ExecProvider.InteractiveMode = "Never"
	access := credentials.FromRESTConfig(config)
	t.Cleanup(access.Release)
	held := access.RESTConfig()
	_ = stream(t, held, a.URL)
	g.Expect(a.lastIdentity()).To(Equal("one"), "client-go runs the plugin")

	certificate, key := newCertificate(t, "two", future())
	g.Expect(access.Switch(credentials.FromRESTConfig(&rest.Config{Host: b.URL, TLSClientConfig: rest.TLSClientConfig{
		CAData: b.ca(), CertData: []byte(certificate), KeyData: []byte(key),
	}}))).To(Succeed())
	_ = stream(t, held, a.URL)
	g.Expect(b.lastIdentity()).To(Equal("two"))
}

func TestStreamsThatCannotFollow(t *testing.T) {
	t.Run("an executor from before a switch to another authority", func(t *testing.T) {
		g := NewWithT(t)
		plugin, a, b := newFakePlugin(t), newServer(t, "Bearer t1"), newServer(t, "Bearer t1")
		plugin.output("t1", future())
		resolver := onePlugin(t, plugin)
		access := resolve(t, resolver, a.profile("c1"))
		rt, err := newUpgrader(access.RESTConfig())
		g.Expect(err).NotTo(HaveOccurred())
		next := b.profile("c1")
		next.Status.AccessProviders[0].Cluster.TLSServerName = "example.com"
		g.Expect(access.Switch(resolve(t, resolver, next))).To(Succeed())
		g.Expect(streamBy(t, rt, a.URL)).To(MatchError(ContainSubstring("make a new client")))
	})
	t.Run("a certificate without TLS settings", func(t *testing.T) {
		g := NewWithT(t)
		plugin := newFakePlugin(t)
		plugin.outputCertificate("one", future())
		profile := &inventory.Profile{}
		*profile = *newServer(t).profile("c1")
		profile.Status.AccessProviders[0].Cluster.CertificateAuthorityData = nil
		access := resolve(t, onePlugin(t, plugin), profile)
		g.Expect(stream(t, access.RESTConfig(), access.Server())).To(MatchError(ContainSubstring("set certificate-authority-data")))
	})
}

func TestOwnTransportIsKept(t *testing.T) {
	for _, tc := range []struct {
		name string
		own  func(s *server, sent *atomic.Int32) http.RoundTripper
	}{
		{"a transport", func(s *server, sent *atomic.Int32) http.RoundTripper {
			own := s.Client().Transport.(*http.Transport).Clone()
			own.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
				sent.Add(1)
				return (&net.Dialer{}).DialContext(ctx, network, address)
			}
			return own
		}},
		{"a wrapper that shows what it wraps", func(s *server, sent *atomic.Int32) http.RoundTripper {
			return &counting{s.Client().Transport, sent}
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			plugin, s := newFakePlugin(t), newServer(t, "Bearer t1")
			plugin.output("t1", future())
			config := resolve(t, onePlugin(t, plugin), s.profile("c1")).RESTConfig()
			config.TLSClientConfig = rest.TLSClientConfig{} // client-go refuses both
			var sent atomic.Int32
			config.Transport = tc.own(s, &sent)
			getAll(t, httpClient(t, config), s.URL, 3, http.StatusOK)
			g.Expect(sent.Load()).NotTo(BeZero())
			utilnet.CloseIdleConnectionsFor(config.Transport)
		})
	}
}

// counting counts requests.
type counting struct {
	http.RoundTripper
	sent *atomic.Int32
}

func (c *counting) RoundTrip(req *http.Request) (*http.Response, error) {
	c.sent.Add(1)
	return c.RoundTripper.RoundTrip(req)
}

func (c *counting) WrappedRoundTripper() http.RoundTripper { return c.RoundTripper }
