// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package credentials_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	. "github.com/onsi/gomega"
	"go.uber.org/goleak"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"

	"github.com/rollcall-dev/rollcall/pkg/credentials"
	"github.com/rollcall-dev/rollcall/pkg/credentials/providerfile"
)

func TestReleaseEndsWatchesAndRequests(t *testing.T) {
	g := NewWithT(t)
	plugin, server := newFakePlugin(t), newServer(t, "Bearer t1")
	plugin.answer("t1", future())
	resolver := onePlugin(t, plugin)
	before := goleak.IgnoreCurrent()
	access := resolve(t, resolver, server.profile("c1"))
	client := httpClient(t, access.RESTConfig())
	watch, err := client.Get(server.URL + "/watch")
	g.Expect(err).NotTo(HaveOccurred())

	access.Release()
	access.Release()
	_, err = watch.Body.Read(make([]byte, 1))
	g.Expect(err).To(HaveOccurred())
	g.Expect(watch.Body.Close()).To(Succeed())
	_, _, err = get(client, server.URL)
	g.Expect(err).To(MatchError(credentials.ErrReleased))
	g.Expect(err).To(MatchError(ContainSubstring(`profile fleet/c1: provider "fake": access released`)))
	_, _, err = get(httpClient(t, access.RESTConfig()), server.URL)
	g.Expect(err).To(MatchError(credentials.ErrReleased), "also with a new copy")
	server.CloseClientConnections()
	g.Expect(goleak.Find(before)).To(Succeed())
}

func TestARequestThatReleaseInterruptsEndsAsADroppedConnectionWould(t *testing.T) {
	for name, end := range map[string]func(*credentials.Resolver, *credentials.Access){
		"the access is released": func(_ *credentials.Resolver, access *credentials.Access) { access.Release() },
		"the resolver is closed": func(resolver *credentials.Resolver, _ *credentials.Access) { resolver.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			plugin, server := newFakePlugin(t), newServer(t, "Bearer t1")
			plugin.answer("t1", future())
			resolver := onePlugin(t, plugin)
			access := resolve(t, resolver, server.profile("c1"))
			client := httpClient(t, access.RESTConfig())
			failed := make(chan error)
			go func() {
				response, err := client.Post(server.URL+"/hang", "text/plain", strings.NewReader("create"))
				if err == nil {
					_ = response.Body.Close()
				}
				failed <- err
			}()
			<-server.hanging
			end(resolver, access)
			err := <-failed
			g.Expect(utilnet.IsProbableEOF(err)).To(BeTrue(), "%v", err)
			g.Expect(err).NotTo(Or(MatchError(credentials.ErrReleased), MatchError(credentials.ErrClosed)),
				"these say that the server has not had the request")
			g.Expect(server.identities()).To(HaveLen(1))
		})
	}
}

func TestTheLastReleaseDropsTheCredential(t *testing.T) {
	g := NewWithT(t)
	plugin, server := newFakePlugin(t), newServer(t, "Bearer t1")
	plugin.answer("t1", future())
	resolver := onePlugin(t, plugin)
	first, second := resolve(t, resolver, server.profile("c1")), resolve(t, resolver, server.profile("c2"))
	clientOfSecond := httpClient(t, second.RESTConfig())
	getAll(t, httpClient(t, first.RESTConfig()), server.URL, 1, 200)

	first.Release()
	getAll(t, clientOfSecond, server.URL, 1, 200)
	g.Expect(plugin.runs()).To(HaveLen(1), "the second one still has it")

	second.Release()
	third := resolve(t, resolver, server.profile("c3"))
	getAll(t, httpClient(t, third.RESTConfig()), server.URL, 1, 200)
	g.Expect(plugin.runs()).To(HaveLen(2), "the third one starts anew")
}

func TestReleaseStopsTheRun(t *testing.T) {
	g := NewWithT(t)
	plugin, server := newFakePlugin(t), newServer(t)
	plugin.shut()
	waitForChild := plugin.leaveChild()
	access := resolve(t, onePlugin(t, plugin), server.profile("c1"))
	client := httpClient(t, access.RESTConfig())
	failed := make(chan error)
	go func() {
		_, _, err := get(client, server.URL)
		failed <- err
	}()
	g.Eventually(func() int { return len(plugin.runs()) }).Should(Equal(1))
	access.Release()
	g.Expect(<-failed).To(MatchError(credentials.ErrReleased))
	waitForChild()
}

func TestCloseEndsEverything(t *testing.T) {
	g := NewWithT(t)
	plugin, slow, server := newFakePlugin(t), newFakePlugin(t), newServer(t, "Bearer t1")
	plugin.answer("t1", future())
	slow.shut()
	waitForChild := slow.leaveChild()
	before := goleak.IgnoreCurrent()
	slowProvider := slow.provider()
	slowProvider.Name = "slow"
	resolver := newResolver(t, credentials.Options{Providers: []providerfile.Provider{plugin.provider(), slowProvider}})

	client := httpClient(t, resolve(t, resolver, server.profile("c1")).RESTConfig())
	watch, err := client.Get(server.URL + "/watch")
	g.Expect(err).NotTo(HaveOccurred())
	profile := server.profile("c2")
	profile.Status.AccessProviders[0].Name = "slow"
	slowClient := httpClient(t, resolve(t, resolver, profile).RESTConfig())
	failed := make(chan error)
	go func() {
		_, _, err := get(slowClient, server.URL)
		failed <- err
	}()
	g.Eventually(func() int { return len(slow.runs()) }).Should(Equal(1))

	resolver.Close()
	resolver.Close()
	g.Expect(<-failed).To(MatchError(credentials.ErrClosed))
	waitForChild()
	_, err = watch.Body.Read(make([]byte, 1))
	g.Expect(err).To(HaveOccurred())
	g.Expect(watch.Body.Close()).To(Succeed())
	_, _, err = get(client, server.URL)
	g.Expect(err).To(MatchError(credentials.ErrClosed))
	_, err = resolver.Resolve(t.Context(), server.profile("c1"))
	g.Expect(err).To(MatchError(credentials.ErrClosed))
	server.CloseClientConnections()
	g.Expect(goleak.Find(before)).To(Succeed())
}

func TestResolveAndReleaseConcurrently(t *testing.T) {
	plugin, server := newFakePlugin(t), newServer(t, "Bearer t1")
	plugin.answer("t1", future())
	resolver := onePlugin(t, plugin)
	var group sync.WaitGroup
	for i := range 20 {
		group.Go(func() {
			for range 5 {
				access, err := resolver.Resolve(context.Background(), server.profile(fmt.Sprintf("c%d", i)))
				if err != nil {
					t.Error(err)
					return
				}
				client := httpClient(t, access.RESTConfig())
				if status, body, err := get(client, server.URL); err != nil || status != http.StatusOK {
					t.Errorf("status %d, body %q, error %v", status, body, err)
				}
				access.Release()
			}
		})
	}
	group.Wait()
}

func TestGivenConfig(t *testing.T) {
	g := NewWithT(t)
	server := newServer(t, "Bearer given")
	config := &rest.Config{Host: server.URL, BearerToken: "given", TLSClientConfig: rest.TLSClientConfig{CAData: server.ca()}}
	access := credentials.FromRESTConfig(config)
	config.BearerToken = "changed later"
	g.Expect(access.Provider()).To(BeEmpty())
	g.Expect(access.Server()).To(Equal(server.URL))
	g.Expect(access.PortableRESTConfig().BearerToken).To(Equal("given"))

	client := httpClient(t, access.RESTConfig())
	getAll(t, client, server.URL, 3, 200)
	watch, err := client.Get(server.URL + "/watch")
	g.Expect(err).NotTo(HaveOccurred())
	access.Release()
	_, err = watch.Body.Read(make([]byte, 1))
	g.Expect(err).To(HaveOccurred())
	g.Expect(watch.Body.Close()).To(Succeed())
	_, _, err = get(client, server.URL)
	g.Expect(err).To(MatchError(credentials.ErrReleased))
}

func TestFingerprintOfAGivenConfig(t *testing.T) {
	g := NewWithT(t)
	base := func() *rest.Config { return &rest.Config{Host: "https://c1", BearerToken: "s3cret"} }
	want := credentials.FromRESTConfig(base()).Fingerprint()
	g.Expect(credentials.FromRESTConfig(base()).Fingerprint()).To(Equal(want))
	tuned := base()
	tuned.QPS, tuned.UserAgent = 7, "me"
	g.Expect(credentials.FromRESTConfig(tuned).Fingerprint()).To(Equal(want), "what has to do with requests does not count")

	for what, change := range map[string]func(*rest.Config){
		"host":  func(c *rest.Config) { c.Host = "https://c2" },
		"token": func(c *rest.Config) { c.BearerToken = "other" },
		"CA":    func(c *rest.Config) { c.CAFile = "/ca" },
		"key":   func(c *rest.Config) { c.KeyData = []byte("key") },
		"user":  func(c *rest.Config) { c.Impersonate.UserName = "you" },
	} {
		config := base()
		change(config)
		g.Expect(credentials.FromRESTConfig(config).Fingerprint()).NotTo(Equal(want), what)
	}
	opaque := base()
	opaque.Wrap(func(rt http.RoundTripper) http.RoundTripper { return rt })
	g.Expect(credentials.FromRESTConfig(opaque).Fingerprint()).NotTo(Equal(credentials.FromRESTConfig(opaque).Fingerprint()))
}
