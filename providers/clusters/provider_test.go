// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package clusters_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/log"

	mcbuilder "github.com/rollcall-dev/rollcall/pkg/mc/builder"
	mcclusters "github.com/rollcall-dev/rollcall/pkg/mc/clusters"
	"github.com/rollcall-dev/rollcall/pkg/mc/fleet"
	mcmanager "github.com/rollcall-dev/rollcall/pkg/mc/manager"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
	mcreconcile "github.com/rollcall-dev/rollcall/pkg/mc/reconcile"
	"github.com/rollcall-dev/rollcall/providers/clusters"
)

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	SetDefaultEventuallyTimeout(mctest.Timeout)
	goleak.VerifyTestMain(m)
}

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

// env is a manager with the provider and a controller of ConfigMaps.
type env struct {
	*clusters.Provider
	mgr  mcmanager.Manager
	stop func()

	mu   sync.Mutex // guards seen
	seen []string
}

func start(t *testing.T, before ...func(*clusters.Provider)) *env {
	t.Helper()
	g := NewWithT(t)
	e := &env{Provider: clusters.NewWithOptions(clusters.Options{Connection: fleet.ConnectionOptions{
		MinBackoff: time.Millisecond, MaxBackoff: 20 * time.Millisecond,
		Probe: fleet.ProbeOptions{Interval: 10 * time.Millisecond, Timeout: time.Second, FailureThreshold: 1},
	}})}
	for _, f := range before {
		f(e.Provider)
	}
	var err error
	e.mgr, err = mcmanager.New(mctest.New(t).Config(), e.Provider, mctest.ManagerOptions())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(mcbuilder.ControllerManagedBy(e.mgr).For(&corev1.ConfigMap{}).
		Complete(mcreconcile.Func(func(_ context.Context, req mcreconcile.Request) (ctrl.Result, error) {
			e.mu.Lock()
			defer e.mu.Unlock()
			e.seen = append(e.seen, req.ClusterName.String()+"/"+req.Name)
			return ctrl.Result{}, nil
		}))).To(Succeed())
	e.stop = mctest.StartManager(t, e.mgr)
	return e
}

func (e *env) reconciled() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]string(nil), e.seen...)
}

func (e *env) state(name multicluster.ClusterName) func() fleet.State {
	return func() fleet.State {
		for _, s := range e.Status() {
			if s.Name == name {
				return s.State
			}
		}
		return ""
	}
}

func TestLifecycle(t *testing.T) {
	g := NewWithT(t)
	eu, us := mctest.New(t), mctest.New(t)
	g.Expect(eu.Create(configMap("a"))).To(Succeed())
	g.Expect(us.Create(configMap("b"))).To(Succeed())
	added := newCluster(t, eu)
	env := start(t, func(p *clusters.Provider) { g.Expect(p.Add(t.Context(), "eu", added)).To(Succeed()) })

	g.Eventually(env.reconciled).Should(ConsistOf("eu/a"), "added before the start")
	g.Expect(env.Add(t.Context(), "us", newCluster(t, us))).To(Succeed())
	g.Eventually(env.reconciled).Should(ConsistOf("eu/a", "us/b"), "added after the start")
	g.Eventually(env.ClusterNames).Should(ConsistOf(multicluster.ClusterName("eu"), multicluster.ClusterName("us")))

	err := env.Add(t.Context(), "eu", newCluster(t, eu))
	g.Expect(err).To(MatchError(mcclusters.ErrClusterExists))
	g.Expect(err).To(MatchError(ContainSubstring(`"eu"`)))

	us.Fault(mctest.Unavailable)
	g.Eventually(env.state("us")).Should(Equal(fleet.Degraded))
	g.Expect(env.state("eu")()).To(Equal(fleet.Ready), "an outage hurts only its cluster")
	us.Clear()
	g.Eventually(env.state("us")).Should(Equal(fleet.Ready))
	g.Expect(us.Requests("list", "configmaps")+us.Requests("watch", "configmaps")).To(BeNumerically("<=", 2), "not engaged again")

	g.Expect(eu.OpenWatches("configmaps")).To(Equal(1))
	env.Remove("eu")
	g.Eventually(func() int { return eu.OpenWatches("configmaps") }).Should(BeZero())
	g.Eventually(env.state("eu")).Should(BeEmpty())
	_, err = env.Get(t.Context(), "eu")
	g.Expect(err).To(MatchError(multicluster.ErrClusterNotFound))
	env.Remove("eu")

	g.Expect(eu.Create(configMap("c"))).To(Succeed())
	g.Expect(env.Add(t.Context(), "eu", newCluster(t, eu))).To(Succeed(), "the name is free")
	g.Eventually(env.reconciled).Should(ContainElement("eu/c"))
	env.stop()
	g.Expect(env.Add(t.Context(), "late", newCluster(t, eu))).To(MatchError(ContainSubstring("has stopped")))
	g.Eventually(func() int { return eu.OpenWatches("configmaps") + us.OpenWatches("configmaps") }).Should(BeZero())
}

func TestContextOfAdd(t *testing.T) {
	g := NewWithT(t)
	env := start(t)
	ctx, cancel := context.WithCancel(t.Context())
	server := mctest.New(t)
	g.Expect(env.Add(ctx, "eu", newCluster(t, server))).To(Succeed())
	g.Eventually(env.state("eu")).Should(Equal(fleet.Ready))
	cancel()
	g.Eventually(env.state("eu")).Should(BeEmpty())
	g.Expect(env.Add(ctx, "eu", newCluster(t, server))).To(MatchError(context.Canceled))
}

func TestSameClusterTwice(t *testing.T) {
	g := NewWithT(t)
	server := mctest.New(t)
	env := start(t)
	g.Expect(env.Add(t.Context(), "a", newCluster(t, server))).To(Succeed())
	g.Expect(env.Add(t.Context(), "b", newCluster(t, server))).To(Succeed())
	g.Eventually(env.state("a")).Should(Equal(fleet.Ready))
	g.Eventually(env.state("b")).Should(Equal(fleet.Ready))
}

func TestFailingCluster(t *testing.T) {
	g := NewWithT(t)
	down, up := mctest.New(t), mctest.New(t)
	down.Fault(mctest.Refuse)
	env := start(t)
	g.Expect(env.Add(t.Context(), "down", newCluster(t, down))).To(Succeed())
	g.Expect(env.Add(t.Context(), "up", newCluster(t, up))).To(Succeed())
	ended := &stopping{Cluster: newCluster(t, up), end: make(chan struct{})}
	g.Expect(env.Add(t.Context(), "ended", ended)).To(Succeed())
	g.Eventually(env.state("up")).Should(Equal(fleet.Ready))
	g.Eventually(env.state("ended")).Should(Equal(fleet.Ready))
	_, err := env.Get(t.Context(), "down")
	g.Expect(err).To(MatchError(multicluster.ErrClusterNotReady))
	down.Clear()
	g.Eventually(env.state("down")).Should(Equal(fleet.Ready))

	close(ended.end)
	g.Eventually(func() string {
		_, err := env.GetTyped(t.Context(), "ended")
		if err == nil {
			return ""
		}
		return err.Error()
	}).Should(And(ContainSubstring("out of order"), ContainSubstring("remove it and add another")))
	g.Expect(env.state("up")()).To(Equal(fleet.Ready))
}

// stopping is a cluster whose Start ends by itself.
type stopping struct {
	cluster.Cluster
	end chan struct{}
}

func (s *stopping) Start(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- s.Cluster.Start(ctx) }()
	select {
	case err := <-ended:
		return err
	case <-s.end:
		cancel()
		if err := <-ended; err != nil {
			return err
		}
		return errors.New("out of order")
	}
}

func TestIndexField(t *testing.T) {
	g := NewWithT(t)
	eu, us := mctest.New(t), mctest.New(t)
	env := start(t)
	byName := func(o client.Object) []string { return []string{o.GetName()} }
	g.Expect(env.Add(t.Context(), "eu", newCluster(t, eu))).To(Succeed())
	g.Expect(env.mgr.GetFieldIndexer().IndexField(t.Context(), &corev1.ConfigMap{}, "name", byName)).To(Succeed())
	g.Expect(env.Add(t.Context(), "us", newCluster(t, us))).To(Succeed())
	for name, server := range map[multicluster.ClusterName]*mctest.Cluster{"eu": eu, "us": us} {
		g.Expect(server.Create(configMap("a"), configMap("b"))).To(Succeed())
		g.Eventually(env.state(name)).Should(Equal(fleet.Ready))
		cl, err := env.mgr.GetCluster(t.Context(), name)
		g.Expect(err).NotTo(HaveOccurred())
		found := &corev1.ConfigMapList{}
		g.Eventually(func() ([]corev1.ConfigMap, error) {
			err := cl.GetClient().List(t.Context(), found, client.MatchingFields{"name": "a"})
			return found.Items, err
		}).Should(HaveLen(1))
	}
}

func TestInvalidArguments(t *testing.T) {
	g := NewWithT(t)
	p := clusters.New()
	g.Expect(p.Add(t.Context(), "eu", nil)).To(MatchError(ContainSubstring("must not be nil")))
	g.Expect(p.Add(t.Context(), "", newCluster(t, mctest.New(t)))).To(MatchError(ContainSubstring("ClusterName")))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	g.Expect(p.Start(ctx, nil)).To(Succeed())
	g.Expect(multicluster.IsTerminal(p.Start(ctx, nil))).To(BeTrue(), "cannot be started again")
}
