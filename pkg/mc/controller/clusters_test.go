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
	mcsource "github.com/rollcall-dev/rollcall/pkg/mc/source"
)

func TestARequestThatNeedsAClusterNotEngagedYetWaitsForIt(t *testing.T) {
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
		time.Sleep(65 * time.Minute) // between two of the tries that come all the same
		synctest.Wait()
		g.Expect(rec.seen()).To(BeEmpty())

		ready.Store(true)
		g.Expect(c.Engage(t.Context(), "us", &fakeCluster{})).To(Succeed())
		synctest.Wait()
		g.Expect(rec.seen()).To(ConsistOf("us/a", "eu/a"))
	})
}

func TestARequestThatWaitsForAClusterWhichNeverComesIsTriedNowAndThen(t *testing.T) {
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
		g.Expect(series("rollcall_controller_parked_requests")).To(ConsistOf("controller=test 0"), "it goes with its own cluster")
		time.Sleep(time.Hour)
		g.Expect(tries.Load()).To(BeEquivalentTo(7))
	})
}

func TestARequestDoesNotWaitForAClusterOnceItsOwnHasLeft(t *testing.T) {
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
		g.Expect(c.Engage(t.Context(), "eu", &fakeCluster{})).To(Succeed(), "takes the place of the first")
		synctest.Wait()
		g.Expect(series("rollcall_controller_parked_requests")).To(ConsistOf("controller=test 0"))
	})
}

func TestARequestThatMissedTheEngagementByALittleIsNotLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		rec, tries := &recorder{}, 0
		r := mcreconcile.NewClusterNotFoundWrapper(reconcilerFunc(func(ctx context.Context, req mcreconcile.Request) (reconcile.Result, error) {
			if tries++; tries == 1 {
				return reconcile.Result{}, multicluster.NotReadyError("eu", "engaged in this very moment")
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

func TestRequestsOfAClusterThatDoesNotAnswerTakeNoWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		rec := &recorder{}
		c := newController(t, rec, mccontroller.Options{})
		src := newFakeSource("a")
		g.Expect(c.MultiClusterWatch(src)).To(Succeed())
		eu, us := multicluster.NewEngagement(nil), multicluster.NewEngagement(nil)
		euCtx := multicluster.WithEngagement(t.Context(), eu)
		g.Expect(c.Engage(euCtx, "eu", &fakeCluster{})).To(Succeed())
		g.Expect(c.Engage(multicluster.WithEngagement(t.Context(), us), "us", &fakeCluster{})).To(Succeed())
		eu.SetHealthy(false) // before the controller runs
		start(t, c)
		synctest.Wait()
		g.Expect(rec.seen()).To(ConsistOf("us/a"))
		g.Expect(eu.Backlog()).To(Equal(1))
		g.Expect(us.Backlog()).To(BeZero())

		eu.SetHealthy(true)
		synctest.Wait()
		g.Expect(rec.seen()).To(ConsistOf("us/a", "eu/a"))

		eu.SetHealthy(false)
		src.enqueue("eu", "b")
		src.enqueue("us", "b")
		synctest.Wait()
		g.Expect(rec.seen()).To(ConsistOf("us/a", "eu/a", "us/b"))

		g.Expect(c.Engage(euCtx, "eu", &fakeCluster{})).To(Succeed())
		synctest.Wait()
		g.Expect(rec.seen()).To(HaveLen(3), "another cluster in the same engagement does not answer either")

		g.Expect(c.Engage(t.Context(), "eu", &fakeCluster{})).To(Succeed())
		synctest.Wait()
		g.Expect(rec.seen()).To(ConsistOf("us/a", "eu/a", "us/b", "eu/a"), "a successor is healthy")
		eu.SetHealthy(true)
		eu.SetHealthy(false)
		src.enqueue("eu", "c")
		synctest.Wait()
		g.Expect(rec.seen()).To(ContainElement("eu/c"), "the engagement before has no effect")
		g.Expect(eu.Backlog()).To(BeZero())
	})
}

func TestAControllerIsToldOfClustersThatJoinChangeAndLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		var events []string
		src := mcsource.TypedClusterLifecycle(func(_ context.Context, e mcsource.ClusterEvent) []mcreconcile.Request {
			events = append(events, string(e.Type)+" "+e.ClusterName.String())
			return []mcreconcile.Request{request(e.ClusterName, string(e.Type))}
		})
		rec := &recorder{}
		c := newController(t, rec, mccontroller.Options{})
		before, leave := context.WithCancel(t.Context())
		g.Expect(c.Engage(before, "before", &fakeCluster{})).To(Succeed())
		g.Expect(c.Watch(src)).To(Succeed())
		gone, leaveEarly := context.WithCancel(t.Context())
		g.Expect(c.Engage(gone, "gone before the start", &fakeCluster{})).To(Succeed())
		leaveEarly()
		synctest.Wait()
		start(t, c)
		later := multicluster.NewEngagement(nil)
		g.Expect(c.Engage(multicluster.WithEngagement(t.Context(), later), "later", &fakeCluster{})).To(Succeed())
		synctest.Wait()
		g.Expect(events).To(Equal([]string{"Engaged before", "Engaged later"}))

		later.NotifyChange()
		synctest.Wait()
		leave()
		synctest.Wait()
		g.Expect(events).To(Equal([]string{"Engaged before", "Engaged later", "Changed later", "Disengaged before"}))
		g.Expect(rec.seen()).To(ConsistOf("before/Engaged", "later/Engaged", "later/Changed", "before/Disengaged"),
			"the request that tells of a cluster's leave is not dropped with the cluster's others")
	})
}

func TestMetricsOfClustersGoWithThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		c := newController(t, &recorder{}, mccontroller.Options{})
		src := newFakeSource("a")
		src.unsynced("eu")
		g.Expect(c.MultiClusterWatch(src)).To(Succeed())
		g.Expect(series("rollcall_controller_clusters")).To(BeEmpty())
		start(t, c)
		ctx, leave := context.WithCancel(t.Context())
		g.Expect(c.Engage(ctx, "eu", &fakeCluster{})).To(Succeed())
		g.Expect(c.Engage(t.Context(), "us", &fakeCluster{})).To(Succeed())
		synctest.Wait()
		g.Expect(series("rollcall_controller_clusters")).To(ConsistOf("controller=test 2"))
		g.Expect(series("rollcall_controller_cluster_unsynced_sources")).To(ConsistOf("cluster=eu controller=test 1"))
		g.Expect(series("rollcall_controller_cluster_depth")).To(ConsistOf("cluster=eu controller=test 1"))

		leave()
		synctest.Wait()
		g.Expect(series("rollcall_controller_clusters")).To(ConsistOf("controller=test 1"))
		g.Expect(series("rollcall_controller_cluster_unsynced_sources")).To(BeEmpty())
		g.Expect(series("rollcall_controller_cluster_depth")).To(BeEmpty())
	})
}

func TestMetricsOfManyClustersAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		c := newController(t, &recorder{}, mccontroller.Options{})
		src := newFakeSource("a")
		g.Expect(c.MultiClusterWatch(src)).To(Succeed())
		start(t, c)
		for i := range 150 {
			name := multicluster.ClusterName(fmt.Sprintf("c%03d", i))
			src.unsynced(name)
			g.Expect(c.Engage(t.Context(), name, &fakeCluster{})).To(Succeed())
		}
		synctest.Wait()
		depth := series("rollcall_controller_cluster_depth")
		g.Expect(depth).To(HaveLen(101))
		g.Expect(depth).To(ContainElement("cluster=(other) controller=test 50"))
	})
}

func statusOf(c mccontroller.Controller, name multicluster.ClusterName) mccontroller.ClusterStatus {
	for _, status := range c.(mccontroller.StatusReporter).ClusterStatus() {
		if status.ClusterName == name {
			return status
		}
	}
	return mccontroller.ClusterStatus{}
}
