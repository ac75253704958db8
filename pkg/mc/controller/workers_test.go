// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	mccontroller "github.com/rollcall-dev/rollcall/pkg/mc/controller"
	mcmanager "github.com/rollcall-dev/rollcall/pkg/mc/manager"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
	"github.com/rollcall-dev/rollcall/pkg/mc/queue"
	mcreconcile "github.com/rollcall-dev/rollcall/pkg/mc/reconcile"
	mcsource "github.com/rollcall-dev/rollcall/pkg/mc/source"
)

type sourceQueue = workqueue.TypedRateLimitingInterface[mcreconcile.Request]

// fakeProvider has no clusters.
type fakeProvider struct {
	multicluster.Provider
}

// newProviderController is newController under a manager that has a provider.
func newProviderController(t *testing.T, r mcreconcile.Reconciler, options mccontroller.Options) mccontroller.Controller {
	t.Helper()
	mgr, err := mcmanager.New(&rest.Config{Host: "https://127.0.0.1:1"}, &fakeProvider{}, manager.Options{
		Metrics: metricsserver.Options{BindAddress: "0"},
	})
	if err != nil {
		t.Fatal(err)
	}
	options.SkipNameValidation = ptr.To(true)
	options.Reconciler = r
	c, err := mccontroller.NewUnmanaged("test", mgr, options)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// localEvents is a source of events of the local cluster.
func localEvents(objects ...string) source.TypedSource[mcreconcile.Request] {
	events := make(chan event.TypedGenericEvent[string], len(objects))
	for _, object := range objects {
		events <- event.TypedGenericEvent[string]{Object: object}
	}
	return source.TypedChannel(events, handler.TypedFuncs[string, mcreconcile.Request]{
		GenericFunc: func(_ context.Context, e event.TypedGenericEvent[string], q sourceQueue) {
			q.Add(request("", e.Object))
		},
	})
}

func TestWorkersOfOneCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		rec := &recorder{block: true}
		c := newProviderController(t, rec, mccontroller.Options{MaxConcurrentReconciles: 4})
		src := newFakeSource("a")
		g.Expect(c.MultiClusterWatch(src)).To(Succeed())
		start(t, c)
		src.fail("us", notWatched)
		g.Expect(c.Engage(t.Context(), "us", &fakeCluster{})).To(Succeed())
		g.Expect(c.Engage(t.Context(), "eu", &fakeCluster{})).To(Succeed())
		synctest.Wait()
		for _, object := range []string{"b", "c", "d", "e"} {
			src.enqueue("eu", object)
		}
		synctest.Wait()
		g.Expect(rec.seen()).To(HaveLen(3), "one worker is left for other clusters")
		g.Expect(c.Engage(t.Context(), "asia", &fakeCluster{})).To(Succeed())
		synctest.Wait()
		g.Expect(rec.seen()).To(HaveLen(4))
		g.Expect(rec.seen()).To(ContainElement("asia/a"))
	})
}

func TestWorkersOfTheOnlyCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		rec := &recorder{block: true}
		c := newProviderController(t, rec, mccontroller.Options{MaxConcurrentReconciles: 2, ReconciliationTimeout: time.Minute})
		src := newFakeSource("a")
		g.Expect(c.MultiClusterWatch(src)).To(Succeed())
		start(t, c)
		g.Expect(c.Engage(t.Context(), "eu", &fakeCluster{})).To(Succeed())
		synctest.Wait()
		for _, object := range []string{"b", "c", "d", "e", "f"} {
			src.enqueue("eu", object)
		}
		synctest.Wait()
		g.Expect(rec.seen()).To(HaveLen(2), "no worker is left for clusters that do not exist")

		src.fail("us", notWatched)
		ctx, leave := context.WithCancel(t.Context())
		g.Expect(c.Engage(ctx, "us", &fakeCluster{})).To(Succeed())
		time.Sleep(time.Minute + time.Millisecond)
		synctest.Wait()
		g.Expect(rec.seen()).To(HaveLen(3), "one worker is left for the other cluster")
		leave()
		synctest.Wait()
		g.Expect(rec.seen()).To(HaveLen(4), "it has gone")
	})
}

func TestWorkersOfTheLocalCluster(t *testing.T) {
	for _, tc := range []struct {
		name    string
		new     func(*testing.T, mcreconcile.Reconciler, mccontroller.Options) mccontroller.Controller
		many    bool // watch the provider's clusters
		engaged bool // a cluster of the provider
		want    int
	}{
		{"the manager has no provider", newController, false, false, 4},
		{"the manager has no provider, the controller has a source of many clusters", newController, true, false, 4},
		{"the controller watches the local cluster alone", newProviderController, false, true, 4},
		{"the controller watches the provider's clusters too, of which none is engaged", newProviderController, true, false, 4},
		{"the controller watches the provider's clusters too", newProviderController, true, true, 3},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := NewWithT(t)
				rec := &recorder{block: true}
				c := tc.new(t, rec, mccontroller.Options{MaxConcurrentReconciles: 4})
				g.Expect(c.Watch(localEvents("a", "b", "c", "d", "e"))).To(Succeed())
				src := newFakeSource("a")
				src.fail("eu", notWatched)
				if tc.many {
					g.Expect(c.MultiClusterWatch(src)).To(Succeed())
				}
				if tc.engaged {
					g.Expect(c.Engage(t.Context(), "eu", &fakeCluster{})).To(Succeed())
				}
				start(t, c)
				synctest.Wait()
				g.Expect(rec.seen()).To(HaveLen(tc.want))
			})
		})
	}
}

func TestCapBeginsWithTheFirstSource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		rec := &recorder{block: true}
		c := newProviderController(t, rec, mccontroller.Options{MaxConcurrentReconciles: 4, ReconciliationTimeout: time.Minute})
		objects := make([]string, 8)
		for i := range objects {
			objects[i] = fmt.Sprint(i)
		}
		g.Expect(c.Watch(localEvents(objects...))).To(Succeed())
		start(t, c)
		synctest.Wait()
		g.Expect(rec.seen()).To(HaveLen(4))

		src := newFakeSource("a")
		src.fail("eu", notWatched)
		g.Expect(c.Engage(t.Context(), "eu", &fakeCluster{})).To(Succeed())
		g.Expect(c.MultiClusterWatch(src)).To(Succeed())
		time.Sleep(time.Minute + time.Millisecond)
		synctest.Wait()
		g.Expect(rec.seen()).To(HaveLen(7), "three of the local cluster at a time")
		g.Expect(c.Engage(t.Context(), "us", &fakeCluster{})).To(Succeed())
		synctest.Wait()
		g.Expect(rec.seen()).To(HaveLen(8))
		g.Expect(rec.seen()).To(ContainElement("us/a"))
	})
}

func TestCapBeginsWithClusterLifecycle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		rec := &recorder{block: true}
		c := newProviderController(t, rec, mccontroller.Options{MaxConcurrentReconciles: 4})
		g.Expect(c.Watch(mcsource.TypedClusterLifecycle(func(_ context.Context, e mcsource.ClusterEvent) []mcreconcile.Request {
			if e.ClusterName != "eu" {
				return nil
			}
			all := make([]mcreconcile.Request, 5)
			for i := range all {
				all[i] = request(e.ClusterName, fmt.Sprint(i))
			}
			return all
		}))).To(Succeed())
		start(t, c)
		g.Expect(c.Engage(t.Context(), "us", &fakeCluster{})).To(Succeed())
		g.Expect(c.Engage(t.Context(), "eu", &fakeCluster{})).To(Succeed())
		synctest.Wait()
		g.Expect(rec.seen()).To(HaveLen(3))
	})
}

func TestMaxPerCluster(t *testing.T) {
	for _, tc := range []struct {
		name  string
		limit int
		want  int
	}{
		{"2", 2, 2},
		{"0, which is no cap", 0, 4},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := NewWithT(t)
				rec := &recorder{block: true}
				c := newProviderController(t, rec, mccontroller.Options{
					MaxConcurrentReconciles: 4,
					NewQueue:                mccontroller.FairQueue(queue.Options[mcreconcile.Request]{MaxPerCluster: tc.limit}),
				})
				src := newFakeSource("a")
				g.Expect(c.MultiClusterWatch(src)).To(Succeed())
				start(t, c)
				g.Expect(c.Engage(t.Context(), "eu", &fakeCluster{})).To(Succeed())
				synctest.Wait()
				for _, object := range []string{"b", "c", "d", "e"} {
					src.enqueue("eu", object)
				}
				synctest.Wait()
				g.Expect(rec.seen()).To(HaveLen(tc.want))
			})
		})
	}
}

func TestFairQueueRateLimiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		rec := &recorder{err: errors.New("not yet"), errs: 1}
		run(t, rec, mccontroller.Options{
			NewQueue:    mccontroller.FairQueue(queue.Options[mcreconcile.Request]{}),
			RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[mcreconcile.Request](time.Hour, time.Hour),
		})
		time.Sleep(59 * time.Minute)
		g.Expect(rec.seen()).To(HaveLen(1))
		time.Sleep(2 * time.Minute)
		g.Expect(rec.seen()).To(HaveLen(2))
	})
}

// A worker may still have an old request when the cluster comes back, and a
// handler may add the new one with a delay.
func TestDelayedEventOfClusterThatReturns(t *testing.T) {
	for _, tc := range []struct {
		name       string
		priorities *bool
		add        func(sourceQueue)
	}{
		{"AddAfter", nil, func(q sourceQueue) { q.AddAfter(request("eu", "b"), time.Second) }},
		{"AddRateLimited", nil, func(q sourceQueue) { q.AddRateLimited(request("eu", "b")) }},
		{"AddAfter, UsePriorityQueue false", ptr.To(false), func(q sourceQueue) { q.AddAfter(request("eu", "b"), time.Second) }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := NewWithT(t)
				rec := &recorder{}
				finish := make(chan struct{})
				c, src := run(t, reconcilerFunc(func(ctx context.Context, req mcreconcile.Request) (reconcile.Result, error) {
					result, err := rec.Reconcile(ctx, req)
					if req.Name == "b" {
						<-finish // although its context has ended
					}
					return result, err
				}), mccontroller.Options{UsePriorityQueue: tc.priorities})
				src.enqueue("eu", "b")
				synctest.Wait()
				g.Expect(rec.seen()).To(Equal([]string{"eu/a", "eu/b"}))

				g.Expect(c.Engage(t.Context(), "eu", &fakeCluster{})).To(Succeed())
				synctest.Wait()
				tc.add(src.queue("eu"))
				time.Sleep(time.Millisecond)
				close(finish)
				time.Sleep(time.Minute)
				g.Expect(rec.seen()).To(Equal([]string{"eu/a", "eu/b", "eu/a", "eu/b"}))
			})
		})
	}
}
