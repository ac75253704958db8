// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rollcall-dev/rollcall/pkg/credentials"
	"github.com/rollcall-dev/rollcall/pkg/credentials/plugin"
	"github.com/rollcall-dev/rollcall/pkg/credentials/providerfile"
	"github.com/rollcall-dev/rollcall/pkg/mc/fleet"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
)

// servedUnder serves the cluster also under the path, until the returned function is
// called or the test ends.
func servedUnder(t *testing.T, c *mctest.Cluster, path string) (config *rest.Config, end func()) {
	t.Helper()
	config = c.Config()
	target, err := url.Parse(config.Host)
	if err != nil {
		t.Fatal(err)
	}
	tlsConfig, err := rest.TLSConfigFor(config)
	if err != nil {
		t.Fatal(err)
	}
	own := &http.Transport{TLSClientConfig: tlsConfig}
	proxy := httputil.NewSingleHostReverseProxy(target)
	proxy.Transport, proxy.ErrorLog = own, log.New(io.Discard, "", 0)
	server := httptest.NewUnstartedServer(http.StripPrefix(path, proxy))
	server.Config.ErrorLog = proxy.ErrorLog
	server.StartTLS()
	end = func() {
		server.CloseClientConnections()
		server.Close()
		own.CloseIdleConnections()
	}
	t.Cleanup(end)
	config.Host = server.URL + path
	config.CAData = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	return config, end
}

func TestClientsOfHeldConfig(t *testing.T) {
	g := NewWithT(t)
	c := mctest.New(t)
	g.Expect(c.Create(configMap("a"))).To(Succeed())
	one, endOne := servedUnder(t, c, "/one")
	two, _ := servedUnder(t, c, "/clusters/two")
	env, cl := engaged(t, g, c)
	env.credentials.add(one)
	env.credentials.add(two)

	clients := map[string]client.Reader{}
	hold := func(when string) {
		for name, by := range map[string]*http.Client{"": nil, ", with GetHTTPClient": cl.GetHTTPClient()} {
			own, err := client.New(cl.GetConfig(), client.Options{HTTPClient: by})
			g.Expect(err).NotTo(HaveOccurred())
			clients["taken "+when+name] = own
		}
	}
	checkAll := func(now string) {
		for name, own := range clients {
			all := &corev1.ConfigMapList{}
			g.Expect(own.List(t.Context(), all, client.InNamespace("default"))).To(Succeed(), "%s: %s", now, name)
			g.Expect(all.Items).To(HaveLen(1))
		}
	}
	moveTo := func(host string) {
		env.source.put(profile("eu", host))
		g.Eventually(func() string { return cl.GetConfig().Host }).Should(Equal(host))
		g.Eventually(env.state("fleet/eu")).Should(Equal(fleet.Ready))
	}
	hold("first")
	checkAll("first")
	moveTo(one.Host)
	hold("after one swap")
	checkAll("after one swap")

	c.Fault(mctest.Refuse)
	g.Eventually(env.state("fleet/eu")).Should(Equal(fleet.Degraded))
	hold("while Degraded")
	env.source.put(profile("eu", two.Host))
	c.Clear()
	moveTo(two.Host)
	endOne()
	hold("after two swaps")
	checkAll("after two swaps")

	moveTo(c.Config().Host)
	checkAll("back")
	g.Expect(env.aware.of("fleet/eu")).To(HaveLen(1))
}

// rotatingPlugin is a plugin whose credential changes.
type rotatingPlugin struct {
	credential *atomic.Pointer[plugin.Credential]
}

func (rotatingPlugin) Name() string    { return "rotating" }
func (rotatingPlugin) Version() string { return "v1" }
func (p rotatingPlugin) Credential(context.Context, plugin.Request) (*plugin.Credential, error) {
	return p.credential.Load(), nil
}

// upgrader stands for the transports of client-go for SPDY and websockets, which have
// connections of their own.
type upgrader struct {
	http.RoundTripper
	tls *tls.Config
}

// TLSClientConfig implements utilnet.TLSClientConfigHolder.
func (u *upgrader) TLSClientConfig() *tls.Config { return u.tls }

var _ utilnet.TLSClientConfigHolder = &upgrader{}

// streamUser returns the user of a request over an upgrader made of the configuration.
func streamUser(ctx context.Context, config *rest.Config) (string, error) {
	tlsConfig, err := rest.TLSConfigFor(config)
	if err != nil {
		return "", err
	}
	own := &http.Transport{TLSClientConfig: tlsConfig, DisableKeepAlives: true}
	rt, err := rest.HTTPWrappersForConfig(config, &upgrader{own, tlsConfig})
	if err != nil {
		return "", err
	}
	review := &authenticationv1.SelfSubjectReview{}
	review.APIVersion, review.Kind = "authentication.k8s.io/v1", "SelfSubjectReview"
	body, err := json.Marshal(review)
	if err != nil {
		return "", err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost,
		config.Host+"/apis/authentication.k8s.io/v1/selfsubjectreviews", bytes.NewReader(body))
	if err != nil {
		return "", err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := rt.RoundTrip(request)
	if err != nil {
		return "", err
	}
	defer func() { _ = response.Body.Close() }()
	err = json.NewDecoder(response.Body).Decode(review)
	return review.Status.UserInfo.Username, err
}

func TestStreamsOfHeldConfig(t *testing.T) {
	g := NewWithT(t)
	c := mctest.New(t)
	c.AddToken("t1", "one")
	c.AddToken("t2", "two")
	certificate, key := c.ClientCertificate("three")
	rotating := rotatingPlugin{&atomic.Pointer[plugin.Credential]{}}
	rotating.credential.Store(&plugin.Credential{Token: "t1"})
	resolver, err := credentials.New(credentials.Options{
		Providers:       []providerfile.Provider{{Name: "test", Rollcall: providerfile.Extensions{InProcess: "rotating"}}},
		Plugins:         []func() plugin.Plugin{func() plugin.Plugin { return rotating }},
		RefreshInterval: time.Millisecond,
	})
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(resolver.Close)
	env := start(t, nil, func(o *fleet.Options) { o.Credentials = resolver })
	p := profile("eu", c.Config().Host)
	p.Status.AccessProviders[0].Cluster.CertificateAuthorityData = c.Config().CAData
	env.source.put(p)
	g.Eventually(env.state("fleet/eu")).Should(Equal(fleet.Ready), func() string { return env.status("fleet/eu").LastError })
	held := env.aware.of("fleet/eu")[0].cluster.GetConfig()
	user := func() (string, error) { return streamUser(t.Context(), held) }
	g.Expect(user()).To(Equal("one"))

	rotating.credential.Store(&plugin.Credential{Token: "t2"})
	g.Eventually(user).Should(Equal("two"))
	rotating.credential.Store(&plugin.Credential{ClientCertificate: certificate, ClientKey: key})
	g.Eventually(user).Should(Equal("three"))
	g.Expect(env.aware.of("fleet/eu")).To(HaveLen(1))
}
