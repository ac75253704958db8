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
	"time"

	. "github.com/onsi/gomega"
	"go.uber.org/goleak"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"github.com/rollcall-dev/rollcall/pkg/credentials"
	"github.com/rollcall-dev/rollcall/pkg/credentials/providerfile"
)

func TestRelease(t *testing.T) {
	g := NewWithT(t)
	plugin, server := newFakePlugin(t), newServer(t, "Bearer t1")
	plugin.output("t1", future())
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

func TestReleaseDuringRequest(t *testing.T) {
	for name, end := range map[string]func(*credentials.Resolver, *credentials.Access){
		"the access is released": func(_ *credentials.Resolver, access *credentials.Access) { access.Release() },
		"the resolver is closed": func(resolver *credentials.Resolver, _ *credentials.Access) { resolver.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			plugin, server := newFakePlugin(t), newServer(t, "Bearer t1")
			plugin.output("t1", future())
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
	plugin.output("t1", future())
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
	g.Expect(plugin.runs()).To(HaveLen(2), "the credential was dropped")
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

func TestClose(t *testing.T) {
	g := NewWithT(t)
	plugin, slow, server := newFakePlugin(t), newFakePlugin(t), newServer(t, "Bearer t1")
	plugin.output("t1", future())
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
	plugin.output("t1", future())
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

func TestExpiry(t *testing.T) {
	g := NewWithT(t)
	plugin, server := newFakePlugin(t), newServer(t, "Bearer t1")
	expiry := time.Now().Add(time.Hour).Truncate(time.Second)
	plugin.output("t1", expiry)
	access := resolve(t, onePlugin(t, plugin), server.profile("c1"))
	known := func() bool {
		_, ok := access.Expiry()
		return ok
	}
	g.Expect(known()).To(BeFalse(), "there was no request")
	client := httpClient(t, access.RESTConfig())
	g.Expect(known()).To(BeFalse())

	getAll(t, client, server.URL, 1, 200)
	got, ok := access.Expiry()
	g.Expect(ok).To(BeTrue())
	g.Expect(got).To(BeTemporally("==", expiry))
	access.Release()
	g.Expect(known()).To(BeFalse())
}
