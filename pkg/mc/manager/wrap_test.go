// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	mccontroller "github.com/rollcall-dev/rollcall/pkg/mc/controller"
	mcmanager "github.com/rollcall-dev/rollcall/pkg/mc/manager"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
	mcreconcile "github.com/rollcall-dev/rollcall/pkg/mc/reconcile"
	mcsource "github.com/rollcall-dev/rollcall/pkg/mc/source"
)

// engaging is a provider that engages one cluster.
type engaging struct {
	provider
	engagement *multicluster.Engagement
	scheme     *runtime.Scheme // that it was started with
	starts     []string        // events of start requests
}

func (p *engaging) Start(ctx context.Context, aware multicluster.Aware) error {
	p.scheme = multicluster.SchemeFrom(ctx)
	p.engagement = multicluster.NewEngagement(p)
	ctx = multicluster.WithEngagement(ctx, p.engagement)
	if err := aware.Engage(ctx, "eu", &fakeCluster{}); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

func (p *engaging) RequestStart() multicluster.StartRequest {
	p.record("requested")
	return p
}

func (p *engaging) Wait(context.Context) error {
	p.record("waited")
	return nil
}

func (p *engaging) Release() { p.record("released") }

func (p *engaging) record(event string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.starts = append(p.starts, event)
}

// wrappedProvider wraps a provider, as composed providers do.
type wrappedProvider struct {
	multicluster.Provider
	inner multicluster.ProviderRunnable
}

func (p *wrappedProvider) Start(ctx context.Context, aware multicluster.Aware) error {
	return p.inner.Start(ctx, &prefixed{aware})
}

// prefixed wraps an Aware and the clusters that it gets.
type prefixed struct {
	multicluster.Aware
}

func (p *prefixed) Engage(ctx context.Context, name multicluster.ClusterName, cl cluster.Cluster) error {
	return p.Aware.Engage(ctx, "outer#"+name, &wrappedCluster{cl})
}

type wrappedCluster struct{ cluster.Cluster }

// oneRequest is a source of one request for each cluster.
type oneRequest struct{}

func (oneRequest) ForCluster(name multicluster.ClusterName, _ cluster.Cluster) (source.TypedSource[mcreconcile.Request], bool, error) {
	return source.TypedFunc[mcreconcile.Request](func(_ context.Context, q workqueue.TypedRateLimitingInterface[mcreconcile.Request]) error {
		q.Add(mcreconcile.Request{ClusterName: name, Request: reconcile.Request{NamespacedName: client.ObjectKey{Name: "first"}}})
		return nil
	}), true, nil
}

func TestWrappersForwardEverything(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		local := &fakeManager{logger: logr.Discard(), scheme: runtime.NewScheme()}
		inner := &engaging{}
		mgr := wrap(t, local, &wrappedProvider{inner: inner})

		var mu sync.Mutex
		var seen []string
		reconciler := mcreconcile.Func(func(_ context.Context, req mcreconcile.Request) (reconcile.Result, error) {
			mu.Lock()
			defer mu.Unlock()
			seen = append(seen, req.ClusterName.String()+"/"+req.Name)
			return reconcile.Result{}, nil
		})
		newController := func(name string) {
			c, err := mccontroller.New(name, mgr, mccontroller.Options{Reconciler: reconciler, SkipNameValidation: ptr.To(true)})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(c.MultiClusterWatch(oneRequest{})).To(Succeed())
			g.Expect(c.Watch(mcsource.TypedClusterLifecycle(func(_ context.Context, e mcsource.ClusterEvent) []mcreconcile.Request {
				if e.Type != mcsource.ClusterChanged {
					return nil
				}
				return []mcreconcile.Request{{ClusterName: e.ClusterName, Request: reconcile.Request{NamespacedName: client.ObjectKey{Name: "changed"}}}}
			}))).To(Succeed())
		}
		ctx, stop := context.WithCancel(t.Context())
		var running sync.WaitGroup
		run := func(i int) {
			running.Go(func() { g.Expect(local.added[i].Start(ctx)).To(Succeed()) })
			synctest.Wait()
		}
		newController("early")
		run(1) // the controller
		run(0) // the provider
		g.Expect(inner.scheme).To(BeIdenticalTo(local.scheme), "scheme")
		g.Expect(inner.starts).To(Equal([]string{"requested", "waited", "released"}), "admission")
		g.Expect(seen).To(Equal([]string{"outer#eu/first"}))

		inner.engagement.SetHealthy(false)
		inner.engagement.NotifyChange()
		synctest.Wait()
		g.Expect(seen).To(HaveLen(1), "health")
		g.Expect(inner.engagement.Backlog()).To(Equal(1), "backlog, and the change")

		newController("late")
		run(2)
		g.Expect(seen).To(HaveLen(1), "health for a component added late")
		g.Expect(inner.engagement.Backlog()).To(Equal(2))
		g.Expect(inner.starts[3:]).To(Equal([]string{"requested", "waited", "released"}))

		inner.engagement.SetHealthy(true)
		synctest.Wait()
		g.Expect(seen[1:]).To(ConsistOf("outer#eu/changed", "outer#eu/first"))
		g.Expect(inner.engagement.Backlog()).To(BeZero())
		stop()
		running.Wait()
	})
}

var (
	_ multicluster.ProviderRunnable = &wrappedProvider{}
	_ mcmanager.Runnable            = mccontroller.Controller(nil)
)
