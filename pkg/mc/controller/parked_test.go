// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	mccontroller "github.com/rollcall-dev/rollcall/pkg/mc/controller"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
	mcreconcile "github.com/rollcall-dev/rollcall/pkg/mc/reconcile"
)

func TestRequestWaitsForCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		var ready atomic.Bool
		rec := &recorder{}
		needsUS := mcreconcile.NewClusterNotFoundWrapper(reconcilerFunc(func(ctx context.Context, req mcreconcile.Request) (reconcile.Result, error) {
			if !ready.Load() {
				return reconcile.Result{}, multicluster.NotReadyError("us", "Connecting")
			}
			return rec.Reconcile(ctx, req)
		}))
		c := newController(t, needsUS, mccontroller.Options{})
		g.Expect(c.MultiClusterWatch(newFakeSource("a"))).To(Succeed())
		start(t, c)
		g.Expect(c.Engage(t.Context(), "eu", &fakeCluster{})).To(Succeed())
		time.Sleep(65 * time.Minute) // between two of the retries
		synctest.Wait()
		g.Expect(rec.seen()).To(BeEmpty())

		ready.Store(true)
		g.Expect(c.Engage(t.Context(), "us", &fakeCluster{})).To(Succeed())
		synctest.Wait()
		g.Expect(rec.seen()).To(ConsistOf("us/a", "eu/a"))
	})
}

func TestRequestIsRetriedWhileItWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		var tries atomic.Int32
		r := mcreconcile.NewClusterNotFoundWrapper(reconcilerFunc(func(context.Context, mcreconcile.Request) (reconcile.Result, error) {
			tries.Add(1)
			return reconcile.Result{}, multicluster.NotReadyError("us", "on another replica")
		}))
		c := newController(t, r, mccontroller.Options{})
		g.Expect(c.MultiClusterWatch(newFakeSource("a"))).To(Succeed())
		start(t, c)
		ctx, leave := context.WithCancel(t.Context())
		g.Expect(c.Engage(ctx, "eu", &fakeCluster{})).To(Succeed())
		time.Sleep(65 * time.Minute)
		synctest.Wait()
		g.Expect(tries.Load()).To(BeEquivalentTo(7))
		g.Expect(series("rollcall_controller_parked_requests")).To(ConsistOf("controller=test 1"))

		leave()
		synctest.Wait()
		g.Expect(series("rollcall_controller_parked_requests")).To(ConsistOf("controller=test 0"), "dropped with its own cluster")
		time.Sleep(time.Hour)
		g.Expect(tries.Load()).To(BeEquivalentTo(7))
	})
}

func TestWaitingRequestIsDroppedWithItsCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		r := mcreconcile.NewClusterNotFoundWrapper(reconcilerFunc(func(ctx context.Context, _ mcreconcile.Request) (reconcile.Result, error) {
			<-ctx.Done()
			return reconcile.Result{}, multicluster.NotReadyError("us", "Connecting")
		}))
		c := newController(t, r, mccontroller.Options{})
		g.Expect(c.MultiClusterWatch(newFakeSource("a"))).To(Succeed())
		start(t, c)
		g.Expect(c.Engage(t.Context(), "eu", &fakeCluster{})).To(Succeed())
		synctest.Wait()
		g.Expect(c.Engage(t.Context(), "eu", &fakeCluster{})).To(Succeed(), "replaces the first")
		synctest.Wait()
		g.Expect(series("rollcall_controller_parked_requests")).To(ConsistOf("controller=test 0"))
	})
}

func TestRequestIsParkedJustAfterTheEngagement(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		rec, tries := &recorder{}, 0
		r := mcreconcile.NewClusterNotFoundWrapper(reconcilerFunc(func(ctx context.Context, req mcreconcile.Request) (reconcile.Result, error) {
			if tries++; tries == 1 {
				return reconcile.Result{}, multicluster.NotReadyError("eu", "just being engaged")
			}
			return rec.Reconcile(ctx, req)
		}))
		c := newController(t, r, mccontroller.Options{})
		g.Expect(c.MultiClusterWatch(newFakeSource("a"))).To(Succeed())
		start(t, c)
		g.Expect(c.Engage(t.Context(), "eu", &fakeCluster{})).To(Succeed())
		time.Sleep(time.Minute)
		g.Expect(rec.seen()).To(ConsistOf("eu/a"))
	})
}

func TestRequestSucceedsWhileItWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		var needed atomic.Bool
		needed.Store(true)
		rec := &recorder{}
		c, src := run(t, mcreconcile.NewClusterNotFoundWrapper(reconcilerFunc(func(ctx context.Context, req mcreconcile.Request) (reconcile.Result, error) {
			if needed.Load() {
				return reconcile.Result{}, multicluster.NotReadyError("us", "Connecting")
			}
			return rec.Reconcile(ctx, req)
		})), mccontroller.Options{})
		g.Expect(series("rollcall_controller_parked_requests")).To(ConsistOf("controller=test 1"))

		needed.Store(false)
		src.enqueue("eu", "a")
		synctest.Wait()
		g.Expect(rec.seen()).To(Equal([]string{"eu/a"}))
		g.Expect(series("rollcall_controller_parked_requests")).To(ConsistOf("controller=test 0"))

		g.Expect(c.Engage(t.Context(), "us", &fakeCluster{})).To(Succeed())
		time.Sleep(time.Hour)
		g.Expect(rec.seen()).To(Equal([]string{"eu/a", "us/a"}), "no retry is left")
	})
}

func TestRequestWaitsForAnotherCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		var need atomic.Value
		need.Store("us")
		var tries atomic.Int32
		c, src := run(t, mcreconcile.NewClusterNotFoundWrapper(reconcilerFunc(func(_ context.Context, req mcreconcile.Request) (reconcile.Result, error) {
			if req.ClusterName == "eu" {
				tries.Add(1)
				return reconcile.Result{}, multicluster.NotReadyError(multicluster.ClusterName(need.Load().(string)), "Connecting")
			}
			return reconcile.Result{}, nil
		})), mccontroller.Options{})
		need.Store("asia")
		src.enqueue("eu", "a")
		synctest.Wait()
		g.Expect(tries.Load()).To(BeEquivalentTo(2))

		g.Expect(c.Engage(t.Context(), "us", &fakeCluster{})).To(Succeed())
		synctest.Wait()
		g.Expect(tries.Load()).To(BeEquivalentTo(2))
		need.Store("none")
		g.Expect(c.Engage(t.Context(), "asia", &fakeCluster{})).To(Succeed())
		synctest.Wait()
		g.Expect(tries.Load()).To(BeEquivalentTo(3))
		g.Expect(series("rollcall_controller_parked_requests")).To(ConsistOf("controller=test 1"))
	})
}

func TestClusterLeavesBeforeItsRequestWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		rec := &recorder{}
		c := newController(t, mcreconcile.NewClusterNotFoundWrapper(reconcilerFunc(func(ctx context.Context, req mcreconcile.Request) (reconcile.Result, error) {
			if _, err := rec.Reconcile(ctx, req); err != nil || req.ClusterName == "us" {
				return reconcile.Result{}, err
			}
			<-ctx.Done()
			time.Sleep(time.Second)
			return reconcile.Result{}, multicluster.NotReadyError("us", "Connecting")
		})), mccontroller.Options{})
		g.Expect(c.MultiClusterWatch(newFakeSource("a"))).To(Succeed())
		start(t, c)
		ctx, leave := context.WithCancel(t.Context())
		g.Expect(c.Engage(ctx, "eu", &fakeCluster{})).To(Succeed())
		synctest.Wait()
		leave()
		time.Sleep(2 * time.Second)
		g.Expect(series("rollcall_controller_parked_requests")).To(ConsistOf("controller=test 0"))
		g.Expect(c.Engage(t.Context(), "us", &fakeCluster{})).To(Succeed())
		time.Sleep(time.Hour)
		g.Expect(rec.seen()).To(Equal([]string{"eu/a", "us/a"}))
	})
}

func TestWaitingRequestsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		var needed atomic.Bool
		needed.Store(true)
		_, src := run(t, mcreconcile.NewClusterNotFoundWrapper(reconcilerFunc(func(_ context.Context, req mcreconcile.Request) (reconcile.Result, error) {
			if needed.Load() {
				return reconcile.Result{}, multicluster.NotReadyError("us", "Connecting")
			}
			return reconcile.Result{}, nil
		})), mccontroller.Options{})
		for i := range 10_001 {
			src.enqueue("eu", fmt.Sprint(i))
		}
		synctest.Wait()
		g.Expect(series("rollcall_controller_parked_requests")).To(ConsistOf("controller=test 10000"))
		needed.Store(false)
		time.Sleep(time.Hour)
		g.Expect(series("rollcall_controller_parked_requests")).To(ConsistOf("controller=test 0"))
	})
}
