// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	"go.uber.org/goleak"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	mccontext "github.com/rollcall-dev/rollcall/pkg/mc/context"
	mccontroller "github.com/rollcall-dev/rollcall/pkg/mc/controller"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
	"github.com/rollcall-dev/rollcall/pkg/mc/queue"
	mcreconcile "github.com/rollcall-dev/rollcall/pkg/mc/reconcile"
)

func TestRequestsWaitUntilAllSourcesOfTheirClusterHaveSynced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		rec := &recorder{}
		c := newController(t, rec, mccontroller.Options{})
		quick, slow := newFakeSource("a"), newFakeSource("b")
		slow.unsynced("eu")
		g.Expect(c.MultiClusterWatch(quick)).To(Succeed())
		g.Expect(c.MultiClusterWatch(slow)).To(Succeed())
		start(t, c)

		g.Expect(c.Engage(t.Context(), "eu", &fakeCluster{})).To(Succeed())
		g.Expect(c.Engage(t.Context(), "us", &fakeCluster{})).To(Succeed())
		synctest.Wait()
		g.Expect(rec.seen()).To(ConsistOf("us/a", "us/b"), "another cluster's sync holds up nobody")

		slow.sync("eu")
		synctest.Wait()
		g.Expect(rec.seen()).To(ConsistOf("us/a", "us/b", "eu/a", "eu/b"))
	})
}

func TestASourceAddedLateHoldsItsClustersUntilItHasSynced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		rec := &recorder{}
		c := newController(t, rec, mccontroller.Options{})
		first, late := newFakeSource("a"), newFakeSource("b")
		late.unsynced("eu")
		g.Expect(c.MultiClusterWatch(first)).To(Succeed())
		start(t, c)
		g.Expect(c.Engage(t.Context(), "eu", &fakeCluster{})).To(Succeed())
		synctest.Wait()
		g.Expect(rec.seen()).To(ConsistOf("eu/a"))

		g.Expect(c.MultiClusterWatch(late)).To(Succeed())
		synctest.Wait()
		first.enqueue("eu", "again")
		synctest.Wait()
		g.Expect(rec.seen()).To(ConsistOf("eu/a"))

		late.sync("eu")
		synctest.Wait()
		g.Expect(rec.seen()).To(ConsistOf("eu/a", "eu/again", "eu/b"))
	})
}

func TestASourceThatCannotStartIsTriedAgainAndHurtsNobodyElse(t *testing.T) {
	for _, tc := range []struct {
		name    string
		breakIt func(*fakeSource)
		mend    func(*fakeSource)
	}{
		{
			name:    "it cannot be made for the cluster",
			breakIt: func(s *fakeSource) { s.fail("eu", atForCluster) },
			mend:    func(s *fakeSource) { s.fail("eu", nowhere) },
		},
		{
			name:    "its Start fails",
			breakIt: func(s *fakeSource) { s.fail("eu", atStart) },
			mend:    func(s *fakeSource) { s.fail("eu", nowhere) },
		},
		{
			name:    "it never syncs within the time limit",
			breakIt: func(s *fakeSource) { s.unsynced("eu") },
			mend:    func(s *fakeSource) { s.sync("eu") },
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := NewWithT(t)
				rec := &recorder{}
				c := newController(t, rec, mccontroller.Options{CacheSyncTimeout: time.Second})
				src := newFakeSource("a")
				tc.breakIt(src)
				g.Expect(c.MultiClusterWatch(src)).To(Succeed())
				// The broken cluster is there before the controller starts, the other
				// one comes later: neither may fail Start.
				g.Expect(c.Engage(t.Context(), "eu", &fakeCluster{})).To(Succeed())
				start(t, c)
				g.Expect(c.Engage(t.Context(), "us", &fakeCluster{})).To(Succeed())

				time.Sleep(10 * time.Minute)
				synctest.Wait()
				g.Expect(rec.seen()).To(ConsistOf("us/a"))
				status := statusOf(c, "eu")
				g.Expect(status.UnsyncedSources).To(Equal(1))
				g.Expect(status.LastError).NotTo(BeEmpty())
				g.Expect(src.attempts("eu")).To(And(BeNumerically(">", 5), BeNumerically("<", 30)), "backoff")

				tc.mend(src)
				time.Sleep(2 * time.Minute)
				synctest.Wait()
				g.Expect(rec.seen()).To(ConsistOf("us/a", "eu/a"))
				g.Expect(statusOf(c, "eu")).To(Equal(mccontroller.ClusterStatus{ClusterName: "eu"}))
			})
		})
	}
}

func TestTheErrorOfOneSourceIsShownUntilThatOneHasSynced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		c := newController(t, &recorder{}, mccontroller.Options{})
		broken, slow := newFakeSource("a"), newFakeSource("b")
		broken.fail("eu", atStart)
		slow.unsynced("eu")
		g.Expect(c.MultiClusterWatch(broken)).To(Succeed())
		g.Expect(c.MultiClusterWatch(slow)).To(Succeed())
		start(t, c)
		g.Expect(c.Engage(t.Context(), "eu", &fakeCluster{})).To(Succeed())
		time.Sleep(time.Minute + time.Second)
		slow.sync("eu")
		synctest.Wait()
		g.Expect(statusOf(c, "eu")).To(Equal(mccontroller.ClusterStatus{
			ClusterName: "eu", UnsyncedSources: 1, LastError: "cannot start", Queue: queue.Depth{Waiting: 1},
		}))

		broken.fail("eu", nowhere)
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		g.Expect(statusOf(c, "eu")).To(Equal(mccontroller.ClusterStatus{ClusterName: "eu"}))
	})
}

func TestEngageDoesNotWaitForASourceThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		c := newController(t, &recorder{}, mccontroller.Options{})
		src := newFakeSource("a")
		src.fail("eu", hangAtStart)
		g.Expect(c.MultiClusterWatch(src)).To(Succeed())
		start(t, c)

		began := time.Now()
		g.Expect(c.Engage(t.Context(), "eu", &fakeCluster{})).To(Succeed())
		g.Expect(time.Since(began)).To(BeZero())
	})
}

func TestWhenAClusterLeaves(t *testing.T) {
	t.Run("its queued requests are dropped and its sources can add no more", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			g := NewWithT(t)
			rec := &recorder{}
			c := newController(t, rec, mccontroller.Options{})
			src, never := newFakeSource("a"), newFakeSource("b")
			never.unsynced("eu")
			g.Expect(c.MultiClusterWatch(src)).To(Succeed())
			g.Expect(c.MultiClusterWatch(never)).To(Succeed())
			start(t, c)
			ctx, leave := context.WithCancel(t.Context())
			g.Expect(c.Engage(ctx, "eu", &fakeCluster{})).To(Succeed())
			synctest.Wait()

			leave()
			synctest.Wait()
			src.enqueueEveryWay("eu", "late")
			time.Sleep(time.Hour)
			g.Expect(rec.seen()).To(BeEmpty())
			g.Expect(src.running("eu")).To(BeZero())
		})
	})

	t.Run("the context of its running reconcile ends, which is no failure", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			g := NewWithT(t)
			rec := &recorder{block: true}
			c := newController(t, rec, mccontroller.Options{})
			g.Expect(c.MultiClusterWatch(newFakeSource("a"))).To(Succeed())
			start(t, c)
			ctx, leave := context.WithCancel(t.Context())
			g.Expect(c.Engage(ctx, "eu", &fakeCluster{})).To(Succeed())
			synctest.Wait()
			g.Expect(rec.ended()).To(BeEmpty())

			leave()
			synctest.Wait()
			g.Expect(rec.ended()).To(ConsistOf(MatchError(ContainSubstring(`cluster "eu" has left`))))
			time.Sleep(time.Hour)
			g.Expect(rec.seen()).To(HaveLen(1), "it is not tried again")
		})
	})

	t.Run("one of the same name that follows loses nothing", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			g := NewWithT(t)
			rec := &recorder{}
			c := newController(t, rec, mccontroller.Options{})
			src := newFakeSource("a")
			g.Expect(c.MultiClusterWatch(src)).To(Succeed())
			start(t, c)
			old, leave := context.WithCancel(t.Context())
			g.Expect(c.Engage(old, "eu", &fakeCluster{})).To(Succeed())
			synctest.Wait()

			g.Expect(c.Engage(t.Context(), "eu", &fakeCluster{})).To(Succeed())
			leave() // after its successor has come
			synctest.Wait()
			g.Expect(rec.seen()).To(Equal([]string{"eu/a", "eu/a"}))
			g.Expect(src.running("eu")).To(Equal(1))
			src.enqueue("eu", "b")
			synctest.Wait()
			g.Expect(rec.seen()).To(Equal([]string{"eu/a", "eu/a", "eu/b"}))
		})
	})
}

func TestEngagingTheSameClusterAgainChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		rec := &recorder{}
		c := newController(t, rec, mccontroller.Options{})
		g.Expect(c.MultiClusterWatch(newFakeSource("a"))).To(Succeed())
		start(t, c)
		cl := &fakeCluster{}
		g.Expect(c.Engage(t.Context(), "eu", cl)).To(Succeed())
		g.Expect(c.Engage(t.Context(), "eu", cl)).To(Succeed())
		synctest.Wait()
		g.Expect(rec.seen()).To(Equal([]string{"eu/a"}))
	})
}

func TestAQueueThatKnowsNoClustersKeepsThePromises(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		rec := &recorder{}
		c := newController(t, rec, mccontroller.Options{NewQueue: plainQueue})
		src, slow := newFakeSource("a"), newFakeSource("b")
		slow.unsynced("eu")
		g.Expect(c.MultiClusterWatch(src)).To(Succeed())
		g.Expect(c.MultiClusterWatch(slow)).To(Succeed())
		start(t, c)
		g.Expect(c.Engage(t.Context(), "eu", &fakeCluster{})).To(Succeed())
		time.Sleep(time.Minute)
		g.Expect(rec.seen()).To(BeEmpty())
		slow.sync("eu")
		time.Sleep(time.Minute)
		g.Expect(rec.seen()).To(ConsistOf("eu/a", "eu/b"))
	})
}

// lateQueue keeps no requests back, as if each had been taken off the queue just
// before that was told to.
type lateQueue struct {
	priorityqueue.PriorityQueue[mcreconcile.Request]
}

func (lateQueue) Pause(multicluster.ClusterName, queue.PauseReason)  {}
func (lateQueue) Resume(multicluster.ClusterName, queue.PauseReason) {}
func (lateQueue) Drop(multicluster.ClusterName)                      {}

func TestARequestTakenJustBeforeItsClusterIsHeldIsNotReconciled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		rec := &recorder{}
		c := newController(t, rec, mccontroller.Options{
			NewQueue: func(name string, _ workqueue.TypedRateLimiter[mcreconcile.Request]) workqueue.TypedRateLimitingInterface[mcreconcile.Request] {
				return lateQueue{priorityqueue.New[mcreconcile.Request](name)}
			},
		})
		src := newFakeSource("a")
		src.unsynced("eu")
		g.Expect(c.MultiClusterWatch(src)).To(Succeed())
		start(t, c)
		g.Expect(c.Engage(t.Context(), "eu", &fakeCluster{})).To(Succeed())
		time.Sleep(time.Minute)
		g.Expect(rec.seen()).To(BeEmpty())
		src.sync("eu")
		time.Sleep(time.Minute)
		g.Expect(rec.seen()).To(ConsistOf("eu/a"))
	})
}

func TestWithoutThePriorityQueueClustersAreStillHeldAndDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		rec := &recorder{}
		off := false
		c := newController(t, rec, mccontroller.Options{UsePriorityQueue: &off})
		src := newFakeSource("a")
		src.unsynced("eu")
		g.Expect(c.MultiClusterWatch(src)).To(Succeed())
		start(t, c)
		g.Expect(c.Engage(t.Context(), "eu", &fakeCluster{})).To(Succeed())
		time.Sleep(time.Minute)
		g.Expect(statusOf(c, "eu").Queue).To(Equal(queue.Depth{Waiting: 1}))
		g.Expect(rec.seen()).To(BeEmpty())
		src.sync("eu")
		synctest.Wait()
		g.Expect(rec.seen()).To(ConsistOf("eu/a"))
	})
}

func TestTheContextOfAReconcileCarriesTheCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		var got []any
		c := newController(t, reconcilerFunc(func(ctx context.Context, req mcreconcile.Request) (reconcile.Result, error) {
			name, ok := mccontext.ClusterFrom(ctx)
			got = append(got, name.String(), ok)
			return reconcile.Result{}, nil
		}), mccontroller.Options{})
		g.Expect(c.MultiClusterWatch(newFakeSource("a"))).To(Succeed())
		start(t, c)
		g.Expect(c.Engage(t.Context(), "eu", &fakeCluster{})).To(Succeed())
		synctest.Wait()
		g.Expect(got).To(Equal([]any{"eu", true}))
	})
}

func TestARequestForAClusterThatIsNotEngagedReachesTheReconciler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		rec := &recorder{}
		c := newController(t, rec, mccontroller.Options{})
		src := newFakeSource("a")
		g.Expect(c.MultiClusterWatch(src)).To(Succeed())
		start(t, c)
		g.Expect(c.Engage(t.Context(), "eu", &fakeCluster{})).To(Succeed())
		synctest.Wait()
		src.enqueueFor("eu", request("elsewhere", "b"))
		synctest.Wait()
		g.Expect(rec.seen()).To(ConsistOf("eu/a", "elsewhere/b"))
	})
}

func TestManyEngagementsLeaveNothingBehind(t *testing.T) {
	g := NewWithT(t)
	rec := &recorder{}
	c := newController(t, rec, mccontroller.Options{})
	src := newFakeSource("a")
	g.Expect(c.MultiClusterWatch(src)).To(Succeed())
	start(t, c)
	g.Expect(c.Engage(t.Context(), "stays", &fakeCluster{})).To(Succeed())
	g.Eventually(rec.seen).Should(ConsistOf("stays/a"))

	running := goleak.IgnoreCurrent()
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 1250 {
				ctx, leave := context.WithCancel(t.Context())
				if err := c.Engage(ctx, "comes and goes", &fakeCluster{}); err != nil {
					t.Error(err)
				}
				leave()
			}
		})
	}
	wg.Wait()
	g.Eventually(func() int { return src.running("comes and goes") }).Should(BeZero())
	goleak.VerifyNone(t, running)
	src.enqueue("stays", "b")
	g.Eventually(rec.seen).Should(ContainElement("stays/b"))
}

func TestAFailedReconcileIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		rec := &recorder{err: errors.New("not yet"), errs: 3}
		c := newController(t, rec, mccontroller.Options{})
		g.Expect(c.MultiClusterWatch(newFakeSource("a"))).To(Succeed())
		start(t, c)
		g.Expect(c.Engage(t.Context(), "eu", &fakeCluster{})).To(Succeed())
		time.Sleep(time.Minute)
		g.Expect(rec.seen()).To(HaveLen(4))
	})
}
