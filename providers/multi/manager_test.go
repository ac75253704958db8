// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package multi_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	mcbuilder "github.com/rollcall-dev/rollcall/pkg/mc/builder"
	"github.com/rollcall-dev/rollcall/pkg/mc/fleet"
	mcmanager "github.com/rollcall-dev/rollcall/pkg/mc/manager"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
	mcreconcile "github.com/rollcall-dev/rollcall/pkg/mc/reconcile"
	"github.com/rollcall-dev/rollcall/providers/clusters"
	"github.com/rollcall-dev/rollcall/providers/multi"
	"github.com/rollcall-dev/rollcall/providers/single"
)

func newCluster(t *testing.T, server *mctest.Cluster) cluster.Cluster {
	t.Helper()
	cl, err := cluster.New(server.Config())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.GetHTTPClient().CloseIdleConnections)
	return cl
}

func configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
}

// seen collects requests.
type seen struct {
	mu   sync.Mutex // guards all
	all  []string
	mgr  mcmanager.Manager
	also string // another cluster that each request needs, "" for none
}

func (s *seen) Reconcile(ctx context.Context, req mcreconcile.Request) (ctrl.Result, error) {
	if s.also != "" {
		if _, err := s.mgr.GetCluster(ctx, multicluster.ClusterName(s.also)); err != nil {
			return ctrl.Result{}, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, req.ClusterName.String()+"/"+req.Name)
	return ctrl.Result{}, nil
}

func (s *seen) requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.all...)
}

// quick are options with short delays.
var quick = clusters.Options{Connection: fleet.ConnectionOptions{
	MinBackoff: time.Millisecond, MaxBackoff: 20 * time.Millisecond,
	Probe: fleet.ProbeOptions{Interval: 10 * time.Millisecond, FailureThreshold: 1},
}}

// controller adds a controller of ConfigMaps.
func controller(t *testing.T, mgr mcmanager.Manager, opts ...mcbuilder.ForOption) *seen {
	t.Helper()
	return controllerWith(t, "", mgr, opts...)
}

// controllerWith is controller for requests that need another cluster.
func controllerWith(t *testing.T, also string, mgr mcmanager.Manager, opts ...mcbuilder.ForOption) *seen {
	t.Helper()
	s := &seen{mgr: mgr, also: also}
	if err := mcbuilder.ControllerManagedBy(mgr).For(&corev1.ConfigMap{}, opts...).Complete(s); err != nil {
		t.Fatal(err)
	}
	return s
}

func newManager(t *testing.T, p multicluster.Provider) mcmanager.Manager {
	t.Helper()
	mgr, err := mcmanager.New(mctest.New(t).Config(), p, mctest.ManagerOptions())
	if err != nil {
		t.Fatal(err)
	}
	return mgr
}

func TestWithManager(t *testing.T) {
	g := NewWithT(t)
	servers := mctest.NewFleet(t, 3)
	for _, c := range servers.Clusters() {
		g.Expect(c.Create(configMap("a"))).To(Succeed())
	}
	home := newCluster(t, servers.Cluster(0))
	cloud, lab := clusters.NewWithOptions(quick), clusters.NewWithOptions(quick)
	p, local := multi.New(multi.Options{}), single.New("eu", home)
	g.Expect(p.AddProvider("cloud", cloud)).To(Succeed())
	g.Expect(p.AddProvider("home", local)).To(Succeed())
	mgr := newManager(t, p)
	g.Expect(mgr.GetLocalManager().Add(home)).To(Succeed())
	all := controller(t, mgr)
	ofCloud := controller(t, mgr, mcbuilder.WithClustersFromProvider(t.Context(), cloud))
	ofHome := controller(t, mgr, mcbuilder.WithClustersFromProvider(t.Context(), local))
	ready := p.LeaderReadyCheck(1, mgr.Elected())
	g.Expect(ready(nil)).To(Succeed(), "before the election")
	g.Expect(p.ReadyCheck(1)(nil)).To(MatchError(ContainSubstring("not been started")))
	mctest.StartManager(t, mgr)

	g.Expect(cloud.Add(t.Context(), "eu", newCluster(t, servers.Cluster(1)))).To(Succeed())
	g.Eventually(all.requests).Should(ConsistOf("home#eu/a", "cloud#eu/a"))
	g.Eventually(ofCloud.requests).Should(ConsistOf("cloud#eu/a"))
	g.Eventually(ofHome.requests).Should(ConsistOf("home#eu/a"))
	g.Eventually(func() error { return ready(nil) }).Should(Succeed())
	g.Expect(p.ClusterNames()).To(ContainElement(multicluster.ClusterName("cloud#eu")))

	// A provider that is added later, with a cluster that is down.
	servers.Cluster(2).Fault(mctest.Refuse)
	g.Expect(lab.Add(t.Context(), "eu", newCluster(t, servers.Cluster(2)))).To(Succeed())
	g.Expect(p.AddProvider("lab", lab)).To(Succeed())
	g.Eventually(func() error { return ready(nil) }).Should(MatchError("2 of 3 clusters are ready, need 100 %"))
	g.Eventually(stateOf(p, "lab#eu")).Should(Equal(fleet.Backoff))
	waiting := controllerWith(t, "lab#eu", mgr)
	g.Consistently(waiting.requests, 50*time.Millisecond).Should(BeEmpty())
	servers.Cluster(2).Clear()
	g.Eventually(waiting.requests).Should(ConsistOf("home#eu/a", "cloud#eu/a", "lab#eu/a"),
		"requests that wait for a cluster get its prefixed name")

	// Health comes through.
	server := servers.Cluster(1)
	server.Fault(mctest.Unavailable)
	g.Eventually(stateOf(p, "cloud#eu")).Should(Equal(fleet.Degraded))
	g.Expect(server.Create(configMap("b"))).To(Succeed())
	g.Consistently(all.requests, 50*time.Millisecond).ShouldNot(ContainElement("cloud#eu/b"))
	server.Clear()
	g.Eventually(all.requests).Should(ContainElement("cloud#eu/b"))

	page := httptest.NewRecorder()
	p.StatusHandler().ServeHTTP(page, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/?format=json", nil))
	g.Expect(page.Body.String()).To(And(ContainSubstring(`"synced":true`), ContainSubstring(`"name":"cloud#eu"`), ContainSubstring(`"name":"home#eu"`)))

	p.RemoveProvider("cloud")
	g.Eventually(func() int { return server.OpenWatches("configmaps") }).Should(BeZero())
	_, err := mgr.GetCluster(t.Context(), "cloud#eu")
	g.Expect(err).To(MatchError(multicluster.ErrClusterNotFound))
	g.Expect(stateOf(p, "cloud#eu")()).To(BeEmpty())
}

func stateOf(p *multi.Provider, name multicluster.ClusterName) func() fleet.State {
	return func() fleet.State {
		for _, s := range p.Status() {
			if s.Name == name {
				return s.State
			}
		}
		return ""
	}
}

// setup is a provider that engages its cluster with the manager that it is set up with.
type setup struct {
	*fake
	local   chan bool // whether that has a local manager
	fails   error
	started chan struct{}
}

func (s *setup) SetupWithManager(ctx context.Context, mgr mcmanager.Manager) error {
	if s.fails != nil {
		return s.fails
	}
	s.local <- mgr.GetLocalManager() != nil
	return mgr.Engage(ctx, "eu", s.cluster)
}

func TestAsRunnable(t *testing.T) {
	g := NewWithT(t)
	server := mctest.New(t)
	g.Expect(server.Create(configMap("a"))).To(Succeed())
	cl := newCluster(t, server)
	p := multi.New(multi.Options{})
	mgr := newManager(t, p)
	g.Expect(mgr.GetLocalManager().Add(cl)).To(Succeed())
	// Without a Start of its own.
	one := &setup{fake: &fake{cluster: cl}, local: make(chan bool, 1)}
	g.Expect(p.AddProvider("one", multi.AsRunnable(onlySetup{one}, mgr))).To(Succeed())
	// With a Start of its own, which can be repeated.
	two := &setup{fake: &fake{cluster: cl}, local: make(chan bool, 2), started: make(chan struct{}, 9)}
	two.start = func(ctx context.Context, aware multicluster.Aware, run int) error {
		two.started <- struct{}{}
		if run == 1 {
			return errors.New("broken")
		}
		_ = aware.Engage(ctx, "us", cl)
		<-ctx.Done()
		return nil
	}
	g.Expect(p.AddProvider("two", multi.AsRunnable(struct {
		*setup
		restarts
	}{setup: two}, mgr))).To(Succeed())
	g.Expect(p.AddProvider("three", multi.AsRunnable(&setup{fake: engaging(), fails: errors.New("no hub")}, mgr))).To(Succeed())
	all := controller(t, mgr)
	mctest.StartManager(t, mgr)
	g.Eventually(all.requests).Should(ContainElements("one#eu/a", "two#us/a"))
	g.Expect(<-one.local).To(BeTrue())
	g.Expect(two.local).To(HaveLen(1), "set up once")
	g.Expect(two.started).To(HaveLen(2))
	g.Eventually(p.ProviderStatus).Should(ContainElement(multi.ProviderStatus{
		Name: "three", State: multi.Failed, LastError: "cannot set up the provider: no hub",
	}))
	p.RemoveProvider("one")
	g.Expect(server.Create(configMap("b"))).To(Succeed())
	g.Eventually(all.requests).Should(ContainElement("two#us/b"))
	g.Expect(all.requests()).NotTo(ContainElement("one#eu/b"))
}

type restarts struct{}

func (restarts) CanRestart() bool { return true }

// onlySetup hides Start.
type onlySetup struct{ multi.ManagerSetupProvider }
