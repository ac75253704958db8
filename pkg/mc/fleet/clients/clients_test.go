// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package clients_test

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rollcall-dev/rollcall/pkg/credentials"
	"github.com/rollcall-dev/rollcall/pkg/inventory"
	"github.com/rollcall-dev/rollcall/pkg/mc/fleet/clients"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
)

func TestFirstUseConnects(t *testing.T) {
	g := NewWithT(t)
	f := mctest.NewFleet(t, 2)
	c, unused := f.Cluster(0), f.Cluster(1)
	e := newEnv(t, nil, c, unused)
	g.Expect(e.count(c.Name())).To(BeZero(), "nothing connects before the first use")

	const callers = 50
	got := make([]client.Client, callers)
	var group sync.WaitGroup
	for i := range got {
		group.Go(func() {
			member, err := e.Client(t.Context(), ref(c.Name()))
			if err != nil {
				t.Error(err)
			}
			got[i] = member
		})
	}
	group.Wait()
	g.Expect(e.count(c.Name())).To(Equal(1), "all callers share one connect")
	g.Expect(c.Requests("get", "/api")).To(Equal(1), "and one discovery")
	g.Expect(c.Requests("", "")).To(Equal(2))
	for _, member := range got {
		g.Expect(member).To(BeIdenticalTo(got[0]))
	}
	g.Expect(got[0].Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}})).To(Succeed())
	g.Expect(c.Requests("", "")).To(Equal(3))
	g.Expect(c.OpenWatches("")).To(BeZero())
	g.Expect(unused.Connections()).To(BeZero())
	g.Expect(e.count(unused.Name())).To(BeZero())
}

func TestConfigForClientsets(t *testing.T) {
	g := NewWithT(t)
	c := mctest.New(t)
	e := newEnv(t, nil, c)
	config, err := e.Config(t.Context(), ref(c.Name()))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(c.Connections()).To(BeZero(), "Config sends no request")
	g.Expect(config.BearerToken).To(BeEmpty())
	clientset, err := kubernetes.NewForConfig(config)
	g.Expect(err).NotTo(HaveOccurred())
	_, err = clientset.CoreV1().Namespaces().Get(t.Context(), "default", metav1.GetOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(read(t.Context(), e.client(c))).To(Succeed())
	g.Eventually(c.Connections).Should(Equal(1), "both share the connection")
}

func TestErrors(t *testing.T) {
	g := NewWithT(t)
	f := mctest.NewFleet(t, 2)
	c, later := f.Cluster(0), f.Cluster(1)
	i := newInventory()
	notStarted, err := clients.New(clients.Options{Source: i, Credentials: i})
	g.Expect(err).NotTo(HaveOccurred())
	_, err = notStarted.Client(t.Context(), ref(c.Name()))
	g.Expect(err).To(MatchError(clients.ErrNotSynced))

	stop := mctest.StartManager(t, notStarted)
	i.set(c.Name(), c.Config())
	i.put(profile(c.Name(), c.Name()))
	_, err = notStarted.Client(t.Context(), ref(c.Name()))
	g.Expect(err).NotTo(HaveOccurred(), "the profile is there, although others may not be")
	_, err = notStarted.Client(t.Context(), ref(later.Name()))
	g.Expect(err).To(MatchError(clients.ErrNotSynced))
	i.sync()
	_, err = notStarted.Config(t.Context(), ref(later.Name()))
	g.Expect(err).To(MatchError(clients.ErrProfileNotFound))
	g.Expect(err).To(MatchError(ContainSubstring("ClusterProfile fleet/" + later.Name())))

	i.put(profile("bad", "nowhere"))
	_, err = notStarted.Client(t.Context(), ref("bad"))
	g.Expect(err).To(MatchError(ContainSubstring(`ClusterProfile fleet/bad: no credentials for "nowhere"`)))
	g.Expect(notStarted.Start(t.Context())).To(MatchError(ContainSubstring("more than once")))

	stop()
	_, err = notStarted.Client(t.Context(), ref(c.Name()))
	g.Expect(err).To(MatchError(clients.ErrStopped))
}

func TestRequiredOptions(t *testing.T) {
	g := NewWithT(t)
	i := newInventory()
	_, err := clients.New(clients.Options{Credentials: i})
	g.Expect(err).To(MatchError(ContainSubstring("Options.Source")))
	_, err = clients.New(clients.Options{Source: i})
	g.Expect(err).To(MatchError(ContainSubstring("Options.Credentials")))
}

func TestAccessWithoutServer(t *testing.T) {
	g := NewWithT(t)
	e := newEnv(t, nil)
	e.set("none", &rest.Config{})
	e.put(profile("none", "none"))
	_, err := e.Client(t.Context(), ref("none"))
	g.Expect(err).To(MatchError(And(ContainSubstring("fleet/none: "), ContainSubstring("is not a URL with a host"))))
}

// TestBackoff checks that a failing method is not called by each caller.
func TestBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		e := newEnv(t, nil)
		e.put(profile("bad", "nowhere"))
		for range 600 { // a minute
			_, err := e.Client(t.Context(), ref("bad"))
			g.Expect(err).To(MatchError(ContainSubstring("no credentials")))
			time.Sleep(100 * time.Millisecond)
		}
		g.Expect(e.count("nowhere")).To(BeNumerically("~", 6, 1), "after 1, 3, 7, 15, 31 s")
		e.notify()
		_, err := e.Client(t.Context(), ref("bad"))
		g.Expect(err).To(HaveOccurred())
		g.Expect(e.count("nowhere")).To(BeNumerically("~", 7, 1), "a change ends the backoff")
		e.stop()
	})
}

// stuck is a Method that ignores the context.
type stuck struct{ release chan struct{} }

func (s stuck) Resolve(context.Context, *inventory.Profile) (*credentials.Access, error) {
	<-s.release
	return nil, errors.New("released")
}

func TestResolveIgnoresContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		s := stuck{make(chan struct{})}
		e := newEnv(t, func(o *clients.Options) { o.Credentials = s })
		e.put(profile("bad", "nowhere"))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		_, err := e.Client(ctx, ref("bad"))
		g.Expect(err).To(MatchError(context.DeadlineExceeded))
		g.Expect(time.Since(began)).To(Equal(time.Second))
		_, err = e.Client(t.Context(), ref("bad"))
		g.Expect(err).To(MatchError(ContainSubstring("timed out")))
		g.Expect(time.Since(began)).To(Equal(30*time.Second), "the attempt is that of the first caller")
		_, err = e.Config(t.Context(), ref("bad"))
		g.Expect(err).To(MatchError(ContainSubstring("timed out")), "it is not called again before it returns")
		close(s.release)
		e.stop()
	})
}

func TestRESTOptions(t *testing.T) {
	g := NewWithT(t)
	c := mctest.New(t)
	var mu sync.Mutex
	agents := map[string]bool{}
	e := newEnv(t, func(o *clients.Options) {
		o.RESTOptions = []func(*rest.Config) error{func(config *rest.Config) error {
			config.UserAgent = "named"
			config.Wrap(func(next http.RoundTripper) http.RoundTripper {
				return roundTripper(func(request *http.Request) (*http.Response, error) {
					mu.Lock()
					defer mu.Unlock()
					agents[request.UserAgent()] = true
					return next.RoundTrip(request)
				})
			})
			return nil
		}}
	}, c)
	g.Expect(read(t.Context(), e.client(c))).To(Succeed())
	g.Expect(agents).To(Equal(map[string]bool{"named": true}))
	config, err := e.Config(t.Context(), ref(c.Name()))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(config.QPS).To(BeEquivalentTo(-1))

	e = newEnv(t, func(o *clients.Options) {
		o.RESTOptions = []func(*rest.Config) error{func(config *rest.Config) error {
			config.Host = "https://elsewhere"
			return nil
		}}
	}, c)
	_, err = e.Client(t.Context(), ref(c.Name()))
	g.Expect(err).To(MatchError(ContainSubstring("must not change Host")))
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }

func TestOtherHostsAreDenied(t *testing.T) {
	g := NewWithT(t)
	f := mctest.NewFleet(t, 2)
	c, other := f.Cluster(0), f.Cluster(1)
	e := newEnv(t, nil, c)
	config, err := e.Config(t.Context(), ref(c.Name()))
	g.Expect(err).NotTo(HaveOccurred())
	httpClient, err := rest.HTTPClientFor(config)
	g.Expect(err).NotTo(HaveOccurred())
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, other.Config().Host+"/api", http.NoBody)
	g.Expect(err).NotTo(HaveOccurred())
	response, err := httpClient.Do(request)
	if err == nil {
		response.Body.Close()
	}
	g.Expect(err).To(MatchError(credentials.ErrDenied))
	g.Expect(other.Requests("", "")).To(BeZero())
}
