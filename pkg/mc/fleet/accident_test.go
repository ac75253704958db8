// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	mcbuilder "github.com/rollcall-dev/rollcall/pkg/mc/builder"
	"github.com/rollcall-dev/rollcall/pkg/mc/fleet"
	mcmanager "github.com/rollcall-dev/rollcall/pkg/mc/manager"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
	mcreconcile "github.com/rollcall-dev/rollcall/pkg/mc/reconcile"
)

// maxCacheAge is the MaxCacheAge in these tests.
const maxCacheAge = 4 * time.Second

// pruner deletes what it does not find in the cache of cluster a: ConfigMaps in
// cluster b, and Secrets in a.
type pruner struct {
	mcmanager.Manager
	a, b *mctest.Cluster
	// Results of reconciles.
	found, missing, refused, failed atomic.Int32
}

func (p *pruner) Reconcile(ctx context.Context, req mcreconcile.Request) (reconcile.Result, error) {
	if req.ClusterName != name(p.b) || req.Namespace != "default" {
		return reconcile.Result{}, nil
	}
	err := p.prune(ctx, req)
	if stale, ok := errors.AsType[*fleet.StaleCacheError](err); ok && stale.Cluster == name(p.a) {
		p.refused.Add(1)
	} else if err != nil && !errors.Is(err, multicluster.ErrClusterNotReady) {
		p.failed.Add(1)
	}
	return reconcile.Result{}, err
}

func (p *pruner) prune(ctx context.Context, req mcreconcile.Request) error {
	a, err := p.GetCluster(ctx, name(p.a))
	if err != nil {
		return err
	}
	b, err := p.GetCluster(ctx, name(p.b))
	if err != nil {
		return err
	}
	if err := a.GetClient().Get(ctx, req.NamespacedName, &corev1.ConfigMap{}); client.IgnoreNotFound(err) != nil {
		return err
	} else if err == nil {
		p.found.Add(1)
		return nil
	}
	p.missing.Add(1)
	meta := configMap(req.Name).ObjectMeta
	return errors.Join(
		client.IgnoreNotFound(b.GetClient().Delete(ctx, &corev1.ConfigMap{ObjectMeta: meta})),
		client.IgnoreNotFound(a.GetClient().Delete(ctx, &corev1.Secret{ObjectMeta: meta})),
	)
}

// reconcileAgain changes the object in b, which has it.
func (p *pruner) reconcileAgain(name string) {
	touched := configMap(name)
	touched.Labels = map[string]string{"at": fmt.Sprint(time.Now().UnixNano())}
	_ = p.b.Update(touched) // it may have been deleted
}

// deleted reports whether anything was deleted through an API.
func (p *pruner) deleted() bool {
	return p.b.Requests("delete", "configmaps")+p.a.Requests("delete", "secrets") > 0
}

// startPruner runs a pruner whose clusters have the object web.
func startPruner(t *testing.T, g *WithT, change func(*fleet.ConnectionOptions)) (p *pruner, f *fleet.Fleet) {
	t.Helper()
	all := mctest.NewFleet(t, 3)
	p = &pruner{a: all.Cluster(1), b: all.Cluster(2)}
	g.Expect(p.a.Create(configMap("web"), &corev1.Secret{ObjectMeta: configMap("web").ObjectMeta})).To(Succeed())
	g.Expect(p.b.Create(configMap("web"))).To(Succeed())
	source := newFakeSource()
	options := fleet.Options{Source: source, Credentials: newFakeMethod(p.a, p.b), Connection: fleet.ConnectionOptions{
		ConnectTimeout: time.Minute, MinBackoff: 10 * time.Millisecond, MaxBackoff: 50 * time.Millisecond,
	}}
	quickProbes(&options)
	change(&options.Connection)
	f, err := fleet.New(options)
	g.Expect(err).NotTo(HaveOccurred())
	p.Manager, err = mcmanager.New(all.Cluster(0).Config(), f, mctest.ManagerOptions())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(mcbuilder.ControllerManagedBy(p).For(&corev1.ConfigMap{}).Complete(p)).To(Succeed())
	mctest.StartManager(t, p.Manager)
	source.put(profile(p.a.Name(), p.a.Config().Host), profile(p.b.Name(), p.b.Config().Host))
	g.Eventually(p.found.Load).Should(BeNumerically(">", 0))
	return p, f
}

// accidents are outages of cluster a, after which it has no objects for some time.
var accidents = []struct {
	name       string
	disengaged bool
	emptied    func(p *pruner)                       // during the outage
	back       func(g *WithT, p *pruner, end func()) // ends the outage
}{
	{
		name: "objects missing when the API server starts",
		emptied: func(p *pruner) {
			_ = p.a.Delete(configMap("web"))
			p.a.Compact() // it has no history either
		},
	},
	{
		name: "restored without objects",
		emptied: func(p *pruner) {
			_ = p.a.Delete(configMap("web"))
			empty := p.a.Snapshot()
			for i := range 20 {
				_ = p.a.Create(configMap(fmt.Sprintf("later-%d", i)))
			}
			p.a.Restore(empty)
		},
	},
	{
		name:       "engaged again while lists hang",
		disengaged: true,
		emptied:    func(p *pruner) { _ = p.a.Delete(configMap("web")) },
		back: func(g *WithT, p *pruner, end func()) {
			lift := p.a.Fault(mctest.Hang.On("configmaps").For("list", "watch"))
			requests := func() int { return p.a.Requests("list", "configmaps") + p.a.Requests("watch", "configmaps") }
			before := requests()
			end()
			g.Eventually(requests).Should(BeNumerically(">", before))
			lift()
		},
	},
}

func TestAccidentDeletesNothing(t *testing.T) {
	for _, accident := range accidents {
		for _, guarded := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, guarded %v", accident.name, guarded), func(t *testing.T) {
				t.Parallel()
				g := NewWithT(t)
				p, f := startPruner(t, g, func(o *fleet.ConnectionOptions) {
					if accident.disengaged {
						o.Probe.DropAfter = time.Second
					}
					if guarded {
						o.MaxCacheAge = maxCacheAge
					}
				})
				back := p.a.Fault(mctest.Refuse)
				g.Eventually(func() bool {
					cl, err := f.Get(t.Context(), name(p.a))
					if accident.disengaged || err != nil {
						return err != nil
					}
					return time.Since(inStep(g, cl)) > maxCacheAge
				}).Should(BeTrue(), "the outage")
				accident.emptied(p)
				if accident.back != nil {
					accident.back(g, p, back)
				} else {
					back()
				}
				g.Eventually(func() int32 { p.reconcileAgain("web"); return p.missing.Load() }).Should(BeNumerically(">", 0), "a is empty")
				if !guarded {
					g.Eventually(p.deleted).Should(BeTrue(), "the accident")
					return
				}
				cl, err := f.Get(t.Context(), name(p.a))
				g.Expect(err).NotTo(HaveOccurred())
				g.Eventually(func() time.Duration { return time.Since(inStep(g, cl)) }).Should(BeNumerically("<", maxCacheAge/2), "the empty cache is in step")
				missing := p.missing.Load()
				g.Eventually(func() int32 { p.reconcileAgain("web"); return p.missing.Load() }).Should(BeNumerically(">", missing+1))
				g.Expect(p.refused.Load()).To(BeNumerically(">", 0))
				found := p.found.Load()
				g.Expect(p.a.Create(configMap("web"))).To(Succeed())
				g.Eventually(p.found.Load).Should(BeNumerically(">", found), "it is reconciled again when the cache is fresh")
				g.Expect(p.deleted()).To(BeFalse())
				p.proceeds(t, g, f)
			})
		}
	}
}

// proceeds asserts that the pruner deletes again.
func (p *pruner) proceeds(t *testing.T, g *WithT, f *fleet.Fleet) {
	t.Helper()
	g.Eventually(func() error { _, err := f.Get(t.Context(), name(p.a)); return err }).Should(Succeed())
	g.Expect(p.a.Delete(configMap("web"))).To(Succeed())
	g.Eventually(func() bool { p.reconcileAgain("web"); return p.deleted() }).Should(BeTrue())
	g.Expect(p.failed.Load()).To(BeZero())
}

// The network drops all packets: the watch stays open, and has no events.
func TestSilentWatchDeletesNothing(t *testing.T) {
	for _, guarded := range []bool{true, false} {
		t.Run(fmt.Sprintf("guarded %v", guarded), func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			p, f := startPruner(t, g, func(o *fleet.ConnectionOptions) {
				o.Probe.FailureThreshold = 1000 // the cluster does not even become Degraded
				if guarded {
					o.MaxCacheAge = maxCacheAge
				}
			})
			cl, err := f.Get(t.Context(), name(p.a))
			g.Expect(err).NotTo(HaveOccurred())
			thaw := p.a.Fault(mctest.Freeze)
			g.Eventually(func() time.Duration { return time.Since(inStep(g, cl)) }).Should(BeNumerically(">", maxCacheAge))
			fresh, _ := fleet.FreshnessOf(cl, &corev1.ConfigMap{})
			g.Expect(fresh.WatchOpen).To(BeTrue())

			g.Expect(p.a.Create(configMap("new"))).To(Succeed())
			g.Expect(p.b.Create(configMap("new"))).To(Succeed())
			g.Eventually(p.missing.Load).Should(BeNumerically(">", 0))
			if !guarded {
				g.Eventually(p.deleted).Should(BeTrue())
				return
			}
			g.Eventually(p.refused.Load).Should(BeNumerically(">", 0))
			found := p.found.Load()
			thaw()
			g.Eventually(p.found.Load).Should(BeNumerically(">", found), "it is reconciled again when the cache is fresh")
			g.Expect(p.deleted()).To(BeFalse())
			p.proceeds(t, g, f)
		})
	}
}

func TestShutdownWhileCacheIsOld(t *testing.T) {
	g := NewWithT(t)
	p, f := startPruner(t, g, func(o *fleet.ConnectionOptions) { o.MaxCacheAge = time.Second })
	cl, err := f.Get(t.Context(), name(p.a))
	g.Expect(err).NotTo(HaveOccurred())
	outage(g, p.a, cl)
	g.Expect(p.b.Create(configMap("new"))).To(Succeed())
	g.Eventually(p.refused.Load).Should(BeNumerically(">", 0))
	// The end of the test stops the manager, and checks for goroutines.
}

// inStep returns when the ConfigMaps in the cache were last known to be in step.
func inStep(g *WithT, cl cluster.Cluster) time.Time {
	f, known := fleet.FreshnessOf(cl, &corev1.ConfigMap{})
	g.Expect(known).To(BeTrue())
	return f.InStep
}
