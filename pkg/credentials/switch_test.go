// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package credentials_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	. "github.com/onsi/gomega"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"

	"github.com/rollcall-dev/rollcall/pkg/credentials"
)

// kinds are the ways to make an Access for a server that accepts the token.
var kinds = map[string]func(t testing.TB, s *server, token string) *credentials.Access{
	"managed": func(t testing.TB, s *server, token string) *credentials.Access {
		plugin := newFakePlugin(t)
		plugin.output(token, future())
		return resolve(t, onePlugin(t, plugin), s.profile("c1"))
	},
	"static": func(t testing.TB, s *server, token string) *credentials.Access {
		access := credentials.FromRESTConfig(&rest.Config{
			Host: s.URL, BearerToken: token, TLSClientConfig: rest.TLSClientConfig{CAData: s.ca()},
		})
		t.Cleanup(access.Release)
		return access
	},
}

func TestSwitch(t *testing.T) {
	for from, newFirst := range kinds {
		for to, newSecond := range kinds {
			t.Run(from+" to "+to, func(t *testing.T) {
				g := NewWithT(t)
				a, b, c := newServer(t, "Bearer a"), newServer(t, "Bearer b"), newServer(t, "Bearer c")
				access, next := newFirst(t, a, "a"), newSecond(t, b, "b")
				before := httpClient(t, access.RESTConfig())
				ofNext := httpClient(t, next.RESTConfig())
				getAll(t, before, a.URL, 3, http.StatusOK)
				watch, err := before.Get(a.URL + "/watch")
				g.Expect(err).NotTo(HaveOccurred())
				provider, fingerprint := next.Provider(), next.Fingerprint()

				g.Expect(access.Switch(next)).To(Succeed())
				_, err = watch.Body.Read(make([]byte, 1))
				g.Expect(err).To(HaveOccurred())
				g.Expect(watch.Body.Close()).To(Succeed())
				g.Expect(access.Server()).To(Equal(b.URL))
				g.Expect(access.Provider()).To(Equal(provider))
				g.Expect(access.Fingerprint()).To(Equal(fingerprint))
				g.Expect(access.RESTConfig().Host).To(Equal(b.URL))
				g.Expect(access.PortableRESTConfig().Host).To(Equal(b.URL))
				g.Expect(fmt.Sprint(access)).To(ContainSubstring(b.URL))

				seen := len(a.identities())
				after := httpClient(t, access.RESTConfig())
				for _, client := range []*http.Client{before, after, ofNext} {
					getAll(t, client, a.URL, 3, http.StatusOK)
					getAll(t, client, b.URL, 3, http.StatusOK)
					_, _, err = get(client, c.URL)
					g.Expect(err).To(MatchError(credentials.ErrDenied))
				}
				g.Expect(a.identities()).To(HaveLen(seen))
				_, known := access.Expiry()
				g.Expect(known).To(Equal(to == "managed"))

				third := newFirst(t, c, "c")
				g.Expect(access.Switch(third)).To(Succeed())
				next.Release()
				for _, client := range []*http.Client{before, after, ofNext} {
					for _, s := range []*server{a, b, c} {
						getAll(t, client, s.URL, 1, http.StatusOK)
					}
				}
				access.Release()
				for _, client := range []*http.Client{before, after, ofNext} {
					_, _, err = get(client, a.URL)
					g.Expect(err).To(MatchError(credentials.ErrReleased))
				}
				g.Expect(access.Server()).To(Equal(c.URL))
			})
		}
	}
}

func TestSwitchIsRefused(t *testing.T) {
	for kind, newAccess := range kinds {
		t.Run(kind, func(t *testing.T) {
			g := NewWithT(t)
			s := newServer(t, "Bearer a")
			access, released := newAccess(t, s, "a"), newAccess(t, s, "a")
			client := httpClient(t, access.RESTConfig())
			released.Release()
			g.Expect(access.Switch(released)).To(MatchError(credentials.ErrReleased))
			g.Expect(access.Switch(credentials.FromRESTConfig(&rest.Config{}))).To(MatchError(ContainSubstring(`server "" is not a URL with a host`)))
			g.Expect(access.Switch(credentials.FromRESTConfig(&rest.Config{
				Host: "https://c1", TLSClientConfig: rest.TLSClientConfig{CAFile: "/does/not/exist"},
			}))).To(MatchError(ContainSubstring("/does/not/exist")))
			getAll(t, client, s.URL, 1, http.StatusOK)
			g.Expect(access.Server()).To(Equal(s.URL))

			next := newAccess(t, s, "a")
			g.Expect(released.Switch(next)).To(MatchError(credentials.ErrReleased))
			getAll(t, httpClient(t, next.RESTConfig()), s.URL, 1, http.StatusOK)
		})
	}
}

func TestSwitchToNil(t *testing.T) {
	NewWithT(t).Expect(credentials.FromRESTConfig(&rest.Config{Host: "https://c1"}).Switch(nil)).To(MatchError(ContainSubstring("next is nil")))
}

func TestSwitchReleasesTheOldCredential(t *testing.T) {
	g := NewWithT(t)
	plugin, a, b := newFakePlugin(t), newServer(t, "Bearer t1"), newServer(t, "Bearer b")
	plugin.output("t1", future())
	resolver := onePlugin(t, plugin)
	access := resolve(t, resolver, a.profile("c1"))
	getAll(t, httpClient(t, access.RESTConfig()), a.URL, 1, http.StatusOK)
	g.Expect(access.Switch(kinds["static"](t, b, "b"))).To(Succeed())
	getAll(t, httpClient(t, resolve(t, resolver, a.profile("c2")).RESTConfig()), a.URL, 1, http.StatusOK)
	g.Expect(plugin.runs()).To(HaveLen(2), "the credential was dropped")
}

func TestSwitchWhileThePluginRuns(t *testing.T) {
	g := NewWithT(t)
	plugin, a, b := newFakePlugin(t), newServer(t), newServer(t, "Bearer b")
	plugin.shut()
	waitForChild := plugin.leaveChild()
	access := resolve(t, onePlugin(t, plugin), a.profile("c1"))
	client := httpClient(t, access.RESTConfig())
	done := make(chan error)
	go func() {
		response, err := client.Post(a.URL, "text/plain", strings.NewReader("world"))
		if err == nil {
			err = response.Body.Close()
		}
		done <- err
	}()
	g.Eventually(func() int { return len(plugin.runs()) }).Should(Equal(1))
	g.Expect(access.Switch(kinds["static"](t, b, "b"))).To(Succeed())
	g.Expect(<-done).To(Succeed(), "the request was not sent yet")
	g.Expect(b.identities()).To(Equal([]string{"Bearer b"}))
	waitForChild()
}

// TestSwitchWhileASharedPluginRuns covers a credential that another Access uses
// too, so that the switch does not stop the plugin.
func TestSwitchWhileASharedPluginRuns(t *testing.T) {
	g := NewWithT(t)
	plugin, a, b := newFakePlugin(t), newServer(t, "Bearer t1"), newServer(t, "Bearer b")
	plugin.output("t1", future())
	plugin.shut()
	resolver := onePlugin(t, plugin)
	access, other := resolve(t, resolver, a.profile("c1")), resolve(t, resolver, a.profile("c2"))
	client, otherClient := httpClient(t, access.RESTConfig()), httpClient(t, other.RESTConfig())
	var group sync.WaitGroup
	group.Go(func() { getAll(t, otherClient, a.URL, 1, http.StatusOK) })
	switched := make(chan struct{})
	go func() {
		getAll(t, client, a.URL, 1, http.StatusOK)
		close(switched)
	}()
	g.Eventually(func() int { return len(plugin.runs()) }).Should(Equal(1))
	g.Expect(access.Switch(kinds["static"](t, b, "b"))).To(Succeed())
	<-switched
	g.Expect(b.identities()).To(Equal([]string{"Bearer b"}))
	plugin.open()
	group.Wait()
	g.Expect(plugin.runs()).To(HaveLen(1))
}

func TestSwitchWhileDialing(t *testing.T) {
	g := NewWithT(t)
	b := newServer(t, "Bearer b")
	dialing := make(chan struct{})
	access := credentials.FromRESTConfig(&rest.Config{
		Host: "https://192.0.2.1", BearerToken: "a",
		Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
			close(dialing)
			<-ctx.Done() // nothing responds there
			return nil, ctx.Err()
		},
	})
	t.Cleanup(access.Release)
	client := httpClient(t, access.RESTConfig())
	done := make(chan error)
	go func() {
		response, err := client.Post("https://192.0.2.1", "text/plain", strings.NewReader("world"))
		if err == nil {
			err = response.Body.Close()
		}
		done <- err
	}()
	<-dialing
	g.Expect(access.Switch(kinds["static"](t, b, "b"))).To(Succeed())
	g.Expect(<-done).To(Succeed())
}

func TestSwitchInterruptsRequests(t *testing.T) {
	for name, send := range map[string]struct {
		method string
		want   bool
	}{
		"one that reads is repeated":      {http.MethodGet, true},
		"one that creates is not":         {http.MethodPost, false},
		"one that deletes is not, either": {http.MethodDelete, false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			a, b := newServer(t, "Bearer a"), newServer(t, "Bearer b")
			access := kinds["managed"](t, a, "a")
			client := httpClient(t, access.RESTConfig())
			failed := make(chan error)
			go func() {
				request, err := http.NewRequestWithContext(t.Context(), send.method, a.URL+"/hang", http.NoBody)
				if err != nil {
					failed <- err
					return
				}
				response, err := client.Do(request)
				if err == nil {
					_ = response.Body.Close()
				}
				failed <- err
			}()
			<-a.hanging
			g.Expect(access.Switch(kinds["static"](t, b, "b"))).To(Succeed())
			if send.want {
				<-b.hanging
				access.Release()
			}
			err := <-failed
			g.Expect(utilnet.IsProbableEOF(err)).To(BeTrue(), "%v", err)
			g.Expect(err).NotTo(MatchError(credentials.ErrReleased))
		})
	}
}

func TestSwitchAfterCertificateRenewal(t *testing.T) {
	g := NewWithT(t)
	plugin, a, b := newFakePlugin(t), newServer(t, "Bearer a"), newServer(t, "one")
	plugin.outputCertificate("one", future())
	access := kinds["static"](t, a, "a")
	client := httpClient(t, access.RESTConfig())
	getAll(t, client, a.URL, 1, http.StatusOK)
	g.Expect(access.Switch(resolve(t, onePlugin(t, plugin), b.profile("c1")))).To(Succeed())
	getAll(t, client, a.URL, 1, http.StatusOK)

	plugin.outputCertificate("two", future())
	b.accept("two")
	getAll(t, client, a.URL, 20, http.StatusOK)
	g.Expect(plugin.runs()).To(HaveLen(2), "the renewed certificate reaches the connections of the Access that was switched")
}

func TestResolverCloseAfterSwitch(t *testing.T) {
	g := NewWithT(t)
	plugin, a, b := newFakePlugin(t), newServer(t, "Bearer a"), newServer(t, "Bearer t1")
	plugin.output("t1", future())
	resolver := onePlugin(t, plugin)
	access := kinds["static"](t, a, "a")
	client := httpClient(t, access.RESTConfig())
	g.Expect(access.Switch(resolve(t, resolver, b.profile("c1")))).To(Succeed())
	getAll(t, client, a.URL, 1, http.StatusOK)
	resolver.Close()
	_, _, err := get(client, a.URL)
	g.Expect(err).To(MatchError(credentials.ErrClosed))
	g.Expect(access.Switch(kinds["static"](t, a, "a"))).To(MatchError(credentials.ErrClosed))
}

func TestSwitchConcurrently(t *testing.T) {
	g := NewWithT(t)
	servers := []*server{newServer(t, "Bearer t"), newServer(t, "Bearer t"), newServer(t, "Bearer t")}
	plugin := newFakePlugin(t)
	plugin.output("t", future())
	resolver := onePlugin(t, plugin)
	access := resolve(t, resolver, servers[0].profile("c1"))
	client := httpClient(t, access.RESTConfig())
	stop := make(chan struct{})
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				status, body, err := get(client, servers[0].URL)
				// The connection may close between the header and the body.
				if err != nil && status == 0 || status != 0 && status != http.StatusOK {
					t.Errorf("status %d, body %q, error %v", status, body, err)
				}
			}
		})
	}
	for i := range 100 {
		s := servers[i%len(servers)]
		next := resolve(t, resolver, s.profile("c1"))
		if i%2 == 0 {
			next = kinds["static"](t, s, "t")
		}
		g.Expect(access.Switch(next)).To(Succeed())
	}
	close(stop)
	group.Wait()
}

func TestSwitchBothAccessesToEachOther(t *testing.T) {
	g := NewWithT(t)
	s := newServer(t, "Bearer t")
	for range 50 {
		a, b := kinds["static"](t, s, "t"), kinds["static"](t, s, "t")
		errs := make(chan error, 2)
		go func() { errs <- a.Switch(b) }()
		go func() { errs <- b.Switch(a) }()
		first, second := <-errs, <-errs
		g.Expect((first == nil) != (second == nil)).To(BeTrue(), "%v, %v", first, second)
		getAll(t, httpClient(t, a.RESTConfig()), s.URL, 1, http.StatusOK)
		a.Release()
		b.Release()
	}
}

func TestCloseIdleConnections(t *testing.T) {
	for kind, newAccess := range kinds {
		t.Run(kind, func(t *testing.T) {
			g := NewWithT(t)
			s := newServer(t, "Bearer a")
			access := newAccess(t, s, "a")
			access.CloseIdleConnections()
			client := httpClient(t, access.RESTConfig())
			for range 2 {
				getAll(t, client, s.URL, 1, http.StatusOK)
				g.Expect(s.connections.Load()).To(BeEquivalentTo(1))
				access.CloseIdleConnections()
				g.Eventually(s.connections.Load).Should(BeZero())
			}
		})
	}
}
