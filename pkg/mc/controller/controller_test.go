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
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	mccontext "github.com/rollcall-dev/rollcall/pkg/mc/context"
	mccontroller "github.com/rollcall-dev/rollcall/pkg/mc/controller"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
	"github.com/rollcall-dev/rollcall/pkg/mc/queue"
	mcreconcile "github.com/rollcall-dev/rollcall/pkg/mc/reconcile"
)

func TestRequestsWaitForSync(t *testing.T) {
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
		g.Expect(rec.seen()).To(ConsistOf("us/a", "us/b"), "the sync of one cluster delays no other")

		slow.sync("eu")
		synctest.Wait()
		g.Expect(rec.seen()).To(ConsistOf("us/a", "us/b", "eu/a", "eu/b"))
	})
}

func TestSourceAddedLate(t *testing.T) {
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

func TestSourceFails(t *testing.T) {
	for _, tc := range []struct {
		name   string
		fault  func(*fakeSource)
		repair func(*fakeSource)
	}{
		{
			name:   "ForCluster fails",
			fault:  func(s *fakeSource) { s.fail("eu", atForCluster) },
			repair: func(s *fakeSource) { s.fail("eu", nowhere) },
		},
		{
			name:   "its Start fails",
			fault:  func(s *fakeSource) { s.fail("eu", atStart) },
			repair: func(s *fakeSource) { s.fail("eu", nowhere) },
		},
		{
			name:   "it does not sync in time",
			fault:  func(s *fakeSource) { s.unsynced("eu") },
			repair: func(s *fakeSource) { s.sync("eu") },
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := NewWithT(t)
				rec := &recorder{}
				c := newController(t, rec, mccontroller.Options{CacheSyncTimeout: time.Second})
				src := newFakeSource("a")
				tc.fault(src)
				g.Expect(c.MultiClusterWatch(src)).To(Succeed())
				// One cluster is engaged before the controller starts, one after:
				// neither may make Start fail.
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

				tc.repair(src)
				time.Sleep(2 * time.Minute)
				synctest.Wait()
				g.Expect(rec.seen()).To(ConsistOf("us/a", "eu/a"))
				g.Expect(statusOf(c, "eu")).To(Equal(mccontroller.ClusterStatus{ClusterName: "eu"}))
			})
		})
	}
}

func TestLastError(t *testing.T) {
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

func TestEngageDoesNotWaitForSources(t *testing.T) {
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

func TestClusterLeaves(t *testing.T) {
	t.Run("queued requests are dropped, sources add no more", func(t *testing.T) {
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

	t.Run("the context of a running reconcile ends, without an error", func(t *testing.T) {
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
			g.Expect(rec.ended()).To(ConsistOf(MatchError(ContainSubstring(`cluster "eu" was disengaged`))))
			time.Sleep(time.Hour)
			g.Expect(rec.seen()).To(HaveLen(1), "no retry")
		})
	})

	t.Run("its successor is not affected", func(t *testing.T) {
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
			leave() // after the successor was engaged
			synctest.Wait()
			g.Expect(rec.seen()).To(Equal([]string{"eu/a", "eu/a"}))
			g.Expect(src.running("eu")).To(Equal(1))
			src.enqueue("eu", "b")
			synctest.Wait()
			g.Expect(rec.seen()).To(Equal([]string{"eu/a", "eu/a", "eu/b"}))
		})
	})
}

func TestEngageIsRepeated(t *testing.T) {
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

func TestPlainQueue(t *testing.T) {
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

// lateQueue holds no requests back, as if a worker had taken each just before
// Hold.
type lateQueue struct {
	*queue.Queue[mcreconcile.Request]
}

func (lateQueue) Pause(multicluster.ClusterName, queue.PauseReason)  {}
func (lateQueue) Resume(multicluster.ClusterName, queue.PauseReason) {}
func (lateQueue) Drop(multicluster.ClusterName)                      {}

func TestRequestIsTakenJustBeforeHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		rec := &recorder{}
		c := newController(t, rec, mccontroller.Options{
			NewQueue: func(name string, limiter workqueue.TypedRateLimiter[mcreconcile.Request]) workqueue.TypedRateLimitingInterface[mcreconcile.Request] {
				q := mccontroller.FairQueue(queue.Options[mcreconcile.Request]{})(name, limiter)
				return lateQueue{q.(*queue.Queue[mcreconcile.Request])}
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

func TestUsePriorityQueueFalse(t *testing.T) {
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

func TestContextCarriesCluster(t *testing.T) {
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

func TestRequestOfClusterNotEngaged(t *testing.T) {
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

func TestManyEngagements(t *testing.T) {
	g := NewWithT(t)
	rec := &recorder{}
	c := newController(t, rec, mccontroller.Options{})
	src := newFakeSource("a")
	g.Expect(c.MultiClusterWatch(src)).To(Succeed())
	start(t, c)
	g.Expect(c.Engage(t.Context(), "kept", &fakeCluster{})).To(Succeed())
	g.Eventually(rec.seen).Should(ConsistOf("kept/a"))

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
	src.enqueue("kept", "b")
	g.Eventually(rec.seen).Should(ContainElement("kept/b"))
}

func TestReconcileFails(t *testing.T) {
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
