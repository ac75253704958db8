// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	mccontext "github.com/rollcall-dev/rollcall/pkg/mc/context"
	mcmanager "github.com/rollcall-dev/rollcall/pkg/mc/manager"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
)

func TestGetCluster(t *testing.T) {
	local, eu := mctest.New(t), &fakeCluster{}
	with := newManager(t, local, &provider{clusters: map[multicluster.ClusterName]cluster.Cluster{"eu": eu}})
	without := newManager(t, local, nil)
	for _, tc := range []struct {
		name    string
		mgr     mcmanager.Manager
		cluster multicluster.ClusterName
		want    func(mcmanager.Manager) cluster.Cluster // nil: not found
	}{
		{
			name: "local", mgr: with, cluster: mcmanager.LocalCluster,
			want: func(mgr mcmanager.Manager) cluster.Cluster { return mgr.GetLocalManager() },
		},
		{
			name: "local, without a provider", mgr: without, cluster: mcmanager.LocalCluster,
			want: func(mgr mcmanager.Manager) cluster.Cluster { return mgr.GetLocalManager() },
		},
		{
			name: "of the provider", mgr: with, cluster: "eu",
			want: func(mcmanager.Manager) cluster.Cluster { return eu },
		},
		{name: "unknown", mgr: with, cluster: "us"},
		{name: "unknown, without a provider", mgr: without, cluster: "eu"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			byName, err := tc.mgr.GetCluster(t.Context(), tc.cluster)
			fromContext, contextErr := tc.mgr.ClusterFromContext(mccontext.WithCluster(t.Context(), tc.cluster))
			scoped, scopedErr := tc.mgr.GetManager(t.Context(), tc.cluster)
			if tc.want == nil {
				for _, err := range []error{err, contextErr, scopedErr} {
					g.Expect(err).To(And(MatchError(multicluster.ErrClusterNotFound), MatchError(ContainSubstring(tc.cluster.String()))))
				}
				g.Expect([]any{byName, fromContext, scoped}).To(HaveEach(BeNil()))
				return
			}
			g.Expect([]error{err, contextErr, scopedErr}).To(HaveEach(BeNil()))
			g.Expect(byName).To(BeIdenticalTo(tc.want(tc.mgr)))
			g.Expect(fromContext).To(BeIdenticalTo(tc.want(tc.mgr)))
		})
	}
}

func TestContextWithoutCluster(t *testing.T) {
	g := NewWithT(t)
	_, err := newManager(t, mctest.New(t), nil).ClusterFromContext(t.Context())
	g.Expect(err).To(MatchError(ContainSubstring("no cluster name in the context")))
	g.Expect(err).NotTo(MatchError(multicluster.ErrClusterNotFound), "a mistake of the program, not to be ignored")
}

func TestGetProvider(t *testing.T) {
	g := NewWithT(t)
	local, p := mctest.New(t), &provider{}
	g.Expect(newManager(t, local, p).GetProvider()).To(BeIdenticalTo(p))
	g.Expect(newManager(t, local, nil).GetProvider()).To(BeNil())
}

func TestProviderStartsWithTheManager(t *testing.T) {
	g := NewWithT(t)
	p, comp := &runningProvider{}, &component{}
	mgr := newManager(t, mctest.New(t), p)
	g.Expect(mgr.Add(comp)).To(Succeed())
	g.Expect(p.started()).To(BeEmpty())
	stop := mctest.StartManager(t, mgr)
	g.Eventually(p.started).WithTimeout(mctest.Timeout).Should(HaveLen(1))
	g.Expect(p.started()[0].Engage(t.Context(), "eu", &fakeCluster{})).To(Succeed())
	g.Expect(comp.engagements()).To(ConsistOf(multicluster.ClusterName("eu")), "engaged with the manager's components")
	g.Eventually(comp.running).WithTimeout(mctest.Timeout).Should(Equal(1))
	stop()
	g.Expect(p.started()).To(HaveLen(1))
	g.Expect(comp.running()).To(Equal(1))
}

func TestProviderLogger(t *testing.T) {
	g := NewWithT(t)
	var lines []string
	logger := funcr.New(func(_, line string) { lines = append(lines, line) }, funcr.Options{})
	local, p := &fakeManager{logger: logger}, &loggingProvider{}
	wrap(t, local, p)
	g.Expect(local.added[0].Start(t.Context())).To(Succeed())
	g.Expect(lines).To(ConsistOf(ContainSubstring("started")))
}

// loggingProvider logs with the logger of its context.
type loggingProvider struct{ provider }

func (p *loggingProvider) Start(ctx context.Context, _ multicluster.Aware) error {
	log.FromContext(ctx).Info("started")
	return nil
}

func TestProviderFailsWithTerminalError(t *testing.T) {
	g := NewWithT(t)
	failure := errors.New("failure")
	p := &runningProvider{fail: func(int) error { return fmt.Errorf("wrapped: %w", multicluster.TerminalError(failure)) }}
	g.Expect(newManager(t, mctest.New(t), restartable{p}).Start(t.Context())).To(MatchError(failure))
	g.Expect(p.started()).To(HaveLen(1))
}

// once is a provider that must not be started twice, as some are that were written
// for other runtimes.
type once struct {
	*runningProvider
	updates chan struct{}
}

func (p *once) Start(ctx context.Context, aware multicluster.Aware) error {
	close(p.updates) // panics when it is called again
	return p.runningProvider.Start(ctx, aware)
}

// never wraps a provider that it does not let be started again.
type never struct{ *once }

func (never) CanRestart() bool { return false }

func TestFailedProviderEndsTheManager(t *testing.T) {
	for _, tc := range []struct {
		name string
		wrap func(*once) multicluster.Provider
	}{
		{"a provider that does not say that it can be restarted", func(p *once) multicluster.Provider { return p }},
		{"a provider that says that it cannot be restarted", func(p *once) multicluster.Provider { return never{p} }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			failure := errors.New("failure")
			p := &once{&runningProvider{fail: func(int) error { return failure }}, make(chan struct{})}
			ctx, cancel := context.WithTimeout(t.Context(), mctest.Timeout)
			defer cancel()
			g.Expect(newManager(t, mctest.New(t), tc.wrap(p)).Start(ctx)).To(MatchError(failure))
			g.Expect(p.started()).To(HaveLen(1))
		})
	}
}

func TestProviderRestarts(t *testing.T) {
	// A real local manager would need a server.
	run := func(t *testing.T, p *runningProvider) (ended chan error, stop func()) {
		local := &fakeManager{}
		wrap(t, local, restartable{p})
		ctx, cancel := context.WithCancel(t.Context())
		ended = make(chan error, 1)
		go func() { ended <- local.added[0].Start(ctx) }()
		return ended, cancel
	}
	t.Run("with backoff up to a minute", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			g := NewWithT(t)
			p := &runningProvider{fail: func(int) error { return errors.New("failure") }}
			ended, stop := run(t, p)
			time.Sleep(time.Minute)
			g.Expect(len(p.started())).To(And(BeNumerically(">=", 5), BeNumerically("<=", 8)))
			before := len(p.started())
			time.Sleep(time.Hour)
			g.Expect(len(p.started()) - before).To(And(BeNumerically(">=", 45), BeNumerically("<=", 62)))
			stop()
			g.Expect(<-ended).To(Succeed())
		})
	})
	t.Run("soon after it ran for long", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			g := NewWithT(t)
			p := &runningProvider{fail: func(attempt int) error {
				if attempt == 20 {
					time.Sleep(time.Hour)
				}
				return errors.New("failure")
			}}
			ended, stop := run(t, p)
			time.Sleep(2 * time.Hour)
			times := p.startedAt()
			g.Expect(times[20].Sub(times[19])).To(BeNumerically("<", time.Hour+2*time.Second))
			stop()
			g.Expect(<-ended).To(Succeed())
		})
	})
	t.Run("not after it returned nil", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			g := NewWithT(t)
			p := &runningProvider{fail: func(int) error { return nil }}
			ended, stop := run(t, p)
			defer stop()
			g.Expect(<-ended).To(Succeed())
			g.Expect(p.started()).To(HaveLen(1))
		})
	})
}

func TestProviderRunsOnTheLeader(t *testing.T) {
	g := NewWithT(t)
	local := mctest.New(t)
	candidate := func(opts ...mcmanager.Option) (mcmanager.Manager, *runningProvider) {
		p, lease, renew, retry := &runningProvider{}, 6*time.Second, 4*time.Second, 100*time.Millisecond
		mgr, err := mcmanager.New(local.Config(), p, mcmanager.Options{
			Metrics:        metricsserver.Options{BindAddress: "0"},
			LeaderElection: true, LeaderElectionID: "test", LeaderElectionNamespace: "default",
			LeaderElectionReleaseOnCancel: true,
			LeaseDuration:                 &lease, RenewDeadline: &renew, RetryPeriod: &retry,
		}, opts...)
		g.Expect(err).NotTo(HaveOccurred())
		return mgr, p
	}
	first, firstProvider := candidate()
	stopFirst := mctest.StartManager(t, first)
	g.Eventually(firstProvider.started).WithTimeout(mctest.Timeout).Should(HaveLen(1))
	g.Eventually(first.Elected()).WithTimeout(mctest.Timeout).Should(BeClosed())

	second, secondProvider := candidate()
	local.ResetRequests()
	mctest.StartManager(t, second)
	third, thirdProvider := candidate(mcmanager.WithProviderNeedLeaderElection(false))
	stopThird := mctest.StartManager(t, third)
	g.Eventually(thirdProvider.started).WithTimeout(mctest.Timeout).Should(HaveLen(1), "runs on all replicas")
	g.Expect(third.Elected()).NotTo(BeClosed())
	// The first renews its lease, the others ask for it: all of them several times.
	g.Eventually(func() int { return local.Requests("get", "leases.coordination.k8s.io") }).WithTimeout(mctest.Timeout).Should(BeNumerically(">", 10))
	g.Expect(second.Elected()).NotTo(BeClosed())
	g.Expect(secondProvider.started()).To(BeEmpty())

	stopThird()
	stopFirst()
	g.Eventually(secondProvider.started).WithTimeout(mctest.Timeout).Should(HaveLen(1))
}

func TestComponentAddedLate(t *testing.T) {
	g := NewWithT(t)
	mgr := newManager(t, mctest.New(t), nil)
	mctest.StartManager(t, mgr)
	g.Eventually(mgr.Elected()).WithTimeout(mctest.Timeout).Should(BeClosed())
	g.Expect(mgr.Engage(t.Context(), "eu", &fakeCluster{})).To(Succeed())
	comp := &component{}
	g.Expect(mgr.Add(comp)).To(Succeed())
	g.Expect(comp.engagements()).To(ConsistOf(multicluster.ClusterName("eu")))
	g.Eventually(comp.running).WithTimeout(mctest.Timeout).Should(Equal(1), "runs")
	g.Expect(mgr.Engage(t.Context(), "us", &fakeCluster{})).To(Succeed())
	g.Expect(comp.engagements()).To(ConsistOf(multicluster.ClusterName("eu"), multicluster.ClusterName("us")))
}

func TestFieldIndexes(t *testing.T) {
	byKey := func(obj client.Object) []string { return []string{obj.(*corev1.ConfigMap).Data["key"]} }
	local := mctest.New(t)
	for name, key := range map[string]string{"a": "x", "b": "y"} {
		if err := local.Create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Data: map[string]string{"key": key}}); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("local cluster and provider", func(t *testing.T) {
		g := NewWithT(t)
		p := &provider{}
		mgr := newManager(t, local, p)
		g.Expect(mgr.GetFieldIndexer().IndexField(t.Context(), &corev1.ConfigMap{}, "key", byKey)).To(Succeed())
		g.Expect(p.indexed).To(Equal([]string{"key"}))
		mctest.StartManager(t, mgr)
		g.Eventually(mgr.Elected()).WithTimeout(mctest.Timeout).Should(BeClosed())
		list := &corev1.ConfigMapList{}
		g.Expect(mgr.GetLocalManager().GetClient().List(t.Context(), list, client.MatchingFields{"key": "y"})).To(Succeed())
		g.Expect(list.Items).To(HaveLen(1))
		g.Expect(list.Items[0].Name).To(Equal("b"))
	})
	t.Run("without a provider", func(t *testing.T) {
		mgr := newManager(t, local, nil)
		NewWithT(t).Expect(mgr.GetFieldIndexer().IndexField(t.Context(), &corev1.ConfigMap{}, "key", byKey)).To(Succeed())
	})
	t.Run("twice", func(t *testing.T) {
		g := NewWithT(t)
		mgr := newManager(t, local, &provider{})
		other := func(client.Object) []string { return nil }
		g.Expect(mgr.GetFieldIndexer().IndexField(t.Context(), &corev1.ConfigMap{}, "key", byKey)).To(Succeed())
		g.Expect(mgr.GetFieldIndexer().IndexField(t.Context(), &corev1.ConfigMap{}, "key", byKey)).To(Succeed())
		g.Expect(mgr.GetLocalManager().GetFieldIndexer().IndexField(t.Context(), &corev1.ConfigMap{}, "key", byKey)).To(Succeed())
		g.Expect(mgr.GetFieldIndexer().IndexField(t.Context(), &corev1.ConfigMap{}, "key", other)).
			To(MatchError(And(ContainSubstring(`cannot index field "key" of *v1.ConfigMap in the local cluster`), ContainSubstring("another function"))))
	})
	t.Run("also in the manager that is wrapped", func(t *testing.T) {
		g := NewWithT(t)
		mgr, err := manager.New(local.Config(), mctest.ManagerOptions())
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(mgr.GetFieldIndexer().IndexField(t.Context(), &corev1.ConfigMap{}, "key", byKey)).To(Succeed())
		wrapped, err := mcmanager.WithMultiCluster(mgr, &provider{})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(wrapped.GetFieldIndexer().IndexField(t.Context(), &corev1.ConfigMap{}, "key", byKey)).To(Succeed())
		mctest.StartManager(t, wrapped)
		g.Eventually(mgr.Elected()).WithTimeout(mctest.Timeout).Should(BeClosed())
		for _, reader := range []client.Reader{mgr.GetClient(), wrapped.GetLocalManager().GetClient(), wrapped.GetLocalManager().GetCache()} {
			list := &corev1.ConfigMapList{}
			g.Expect(reader.List(t.Context(), list, client.MatchingFields{"key": "y"})).To(Succeed())
			g.Expect(list.Items).To(HaveLen(1))
		}
	})
	t.Run("forbidden in the local cluster", func(t *testing.T) {
		g := NewWithT(t)
		p := &provider{}
		hub := mctest.New(t)
		hub.Fault(mctest.Forbidden.On("configmaps"))
		mgr := newManager(t, hub, p)
		g.Expect(mgr.GetFieldIndexer().IndexField(t.Context(), &corev1.ConfigMap{}, "key", byKey)).To(Succeed())
		g.Expect(p.indexed).To(Equal([]string{"key"}))
		mctest.StartManager(t, mgr)
		g.Eventually(mgr.Elected()).WithTimeout(mctest.Timeout).Should(BeClosed())
		g.Expect(mgr.GetLocalManager().GetCache().WaitForCacheSync(t.Context())).To(BeTrue())
		g.Expect(hub.Requests("list", "configmaps") + hub.Requests("watch", "configmaps")).To(BeZero())
	})
	t.Run("missing in the local cluster", func(t *testing.T) {
		g := NewWithT(t)
		p := &provider{}
		mgr := newManager(t, local, p)
		car := &unstructured.Unstructured{}
		car.SetGroupVersionKind(schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: "Car"})
		g.Expect(mgr.GetFieldIndexer().IndexField(t.Context(), car, "name", func(o client.Object) []string { return []string{o.GetName()} })).To(Succeed())
		g.Expect(p.indexed).To(Equal([]string{"name"}))
		mctest.StartManager(t, mgr)
		g.Eventually(mgr.Elected()).WithTimeout(mctest.Timeout).Should(BeClosed())
	})
	t.Run("the provider fails", func(t *testing.T) {
		g := NewWithT(t)
		failure := errors.New("failure")
		mgr := newManager(t, local, &provider{err: failure})
		g.Expect(mgr.GetFieldIndexer().IndexField(t.Context(), &corev1.ConfigMap{}, "key", byKey)).To(MatchError(failure))
	})
}

func TestNewFails(t *testing.T) {
	g := NewWithT(t)
	mgr, err := mcmanager.New(nil, nil, manager.Options{})
	g.Expect(err).To(HaveOccurred())
	g.Expect(mgr).To(BeNil())
}

func TestTypedNilProvider(t *testing.T) {
	const want = "the provider is a nil *manager_test.runningProvider: for a manager of the local cluster alone, pass nil without a type"
	for name, manage := range map[string]func(multicluster.Provider) (mcmanager.Manager, error){
		"New": func(p multicluster.Provider) (mcmanager.Manager, error) {
			return mcmanager.New(nil, p, mcmanager.Options{})
		},
		"WithMultiCluster": func(p multicluster.Provider) (mcmanager.Manager, error) {
			local := &fakeManager{}
			defer func() {
				if len(local.added) > 0 {
					t.Error("something was added")
				}
			}()
			return mcmanager.WithMultiCluster(local, p)
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			mgr, err := manage((*runningProvider)(nil))
			g.Expect(err).To(MatchError(want))
			g.Expect(mgr).To(BeNil())
		})
	}
}
