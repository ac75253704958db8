// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	mccontroller "github.com/rollcall-dev/rollcall/pkg/mc/controller"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
	"github.com/rollcall-dev/rollcall/pkg/mc/queue"
	mcreconcile "github.com/rollcall-dev/rollcall/pkg/mc/reconcile"
)

func TestOptions(t *testing.T) {
	t.Run("ReconciliationTimeout ends the context of a reconcile", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			g := NewWithT(t)
			rec := &recorder{block: true}
			began := time.Now()
			run(t, rec, mccontroller.Options{ReconciliationTimeout: time.Minute})
			time.Sleep(time.Minute)
			synctest.Wait()
			g.Expect(rec.ended()).To(HaveLen(1))
			g.Expect(time.Since(began)).To(Equal(time.Minute))
		})
	})

	t.Run("RecoverPanic makes a panic an error, by default", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			g := NewWithT(t)
			var tries atomic.Int32
			run(t, reconcilerFunc(func(context.Context, mcreconcile.Request) (reconcile.Result, error) {
				if tries.Add(1) == 1 {
					panic("once")
				}
				return reconcile.Result{}, nil
			}), mccontroller.Options{})
			time.Sleep(time.Minute)
			g.Expect(tries.Load()).To(BeEquivalentTo(2))
		})
	})

	t.Run("RecoverPanic false lets a panic end the process", func(t *testing.T) {
		if os.Getenv("PANIC_IN_RECONCILE") != "" {
			reconciling := make(chan struct{})
			c := newController(t, reconcilerFunc(func(context.Context, mcreconcile.Request) (reconcile.Result, error) {
				defer close(reconciling)
				panic("always")
			}), mccontroller.Options{RecoverPanic: ptr.To(false)})
			g := NewWithT(t)
			g.Expect(c.MultiClusterWatch(newFakeSource("a"))).To(Succeed())
			start(t, c)
			g.Expect(c.Engage(t.Context(), "eu", &fakeCluster{})).To(Succeed())
			<-reconciling
			return
		}
		process := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
		process.Env = append(os.Environ(), "PANIC_IN_RECONCILE=1")
		output, err := process.CombinedOutput()
		g := NewWithT(t)
		g.Expect(err).To(BeAssignableToTypeOf(&exec.ExitError{}))
		g.Expect(string(output)).To(ContainSubstring("panic: always"))
	})

	t.Run("RateLimiter delays the retry of a failed request", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			g := NewWithT(t)
			rec := &recorder{err: errors.New("not yet"), errs: 1}
			run(t, rec, mccontroller.Options{
				RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[mcreconcile.Request](time.Hour, time.Hour),
			})
			time.Sleep(59 * time.Minute)
			g.Expect(rec.seen()).To(HaveLen(1))
			time.Sleep(2 * time.Minute)
			g.Expect(rec.seen()).To(HaveLen(2))
		})
	})

	t.Run("RequeueAfter of a result", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			g := NewWithT(t)
			var tries atomic.Int32
			run(t, reconcilerFunc(func(context.Context, mcreconcile.Request) (reconcile.Result, error) {
				tries.Add(1)
				return reconcile.Result{RequeueAfter: time.Hour}, nil
			}), mccontroller.Options{})
			time.Sleep(150 * time.Minute)
			g.Expect(tries.Load()).To(BeEquivalentTo(3))
		})
	})

	t.Run("a TerminalError is not retried", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			g := NewWithT(t)
			rec := &recorder{err: reconcile.TerminalError(errors.New("always")), errs: 10}
			run(t, rec, mccontroller.Options{})
			time.Sleep(time.Hour)
			g.Expect(rec.seen()).To(HaveLen(1))
		})
	})
}

func TestPriorities(t *testing.T) {
	fair := mccontroller.FairQueue(queue.Options[mcreconcile.Request]{})
	ownQueue := func(name string, _ workqueue.TypedRateLimiter[mcreconcile.Request]) workqueue.TypedRateLimitingInterface[mcreconcile.Request] {
		return priorityqueue.New[mcreconcile.Request](name)
	}
	for _, tc := range []struct {
		name       string
		priorities *bool
		newQueue   func(string, workqueue.TypedRateLimiter[mcreconcile.Request]) workqueue.TypedRateLimitingInterface[mcreconcile.Request]
		want       []string
	}{
		{"by default", nil, nil, []string{"eu/a", "eu/high", "eu/low"}},
		{"FairQueue with options", nil, fair, []string{"eu/a", "eu/high", "eu/low"}},
		{"UsePriorityQueue false", ptr.To(false), nil, []string{"eu/a", "eu/low", "eu/high"}},
		{"UsePriorityQueue false, FairQueue with options", ptr.To(false), fair, []string{"eu/a", "eu/low", "eu/high"}},
		{"UsePriorityQueue false, another queue", ptr.To(false), ownQueue, []string{"eu/a", "eu/low", "eu/high"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := NewWithT(t)
				rec := &recorder{}
				held := make(chan struct{})
				_, src := run(t, reconcilerFunc(func(ctx context.Context, req mcreconcile.Request) (reconcile.Result, error) {
					<-held
					return rec.Reconcile(ctx, req)
				}), mccontroller.Options{UsePriorityQueue: tc.priorities, NewQueue: tc.newQueue})
				time.Sleep(time.Minute) // the worker is busy with eu/a, at once or after a retry
				q := src.queue("eu").(priorityqueue.PriorityQueue[mcreconcile.Request])
				q.AddWithOpts(priorityqueue.AddOpts{Priority: ptr.To(-100)}, request("eu", "low"))
				q.AddWithOpts(priorityqueue.AddOpts{Priority: ptr.To(100)}, request("eu", "high"))
				close(held)
				synctest.Wait()
				g.Expect(rec.seen()).To(Equal(tc.want))
			})
		})
	}
}

func TestWarmup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		rec := &recorder{}
		c := newController(t, rec, mccontroller.Options{EnableWarmup: ptr.To(true)})
		src := newFakeSource("a")
		g.Expect(c.MultiClusterWatch(src)).To(Succeed())
		g.Expect(c.Engage(t.Context(), "eu", &fakeCluster{})).To(Succeed())

		warm := c.(interface{ Warmup(context.Context) error })
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		g.Expect(warm.Warmup(ctx)).To(Succeed())
		synctest.Wait()
		g.Expect(src.running("eu")).To(Equal(1), "sources run")
		g.Expect(rec.seen()).To(BeEmpty(), "nothing is reconciled")

		g.Expect(c.Engage(t.Context(), "us", &fakeCluster{})).To(Succeed(), "clusters engaged during the warm-up")
		synctest.Wait()
		g.Expect(src.running("us")).To(Equal(1))

		start(t, c)
		synctest.Wait()
		g.Expect(rec.seen()).To(ConsistOf("eu/a", "us/a"))
		g.Expect(src.attempts("eu")).To(Equal(1))
	})
}

func TestNeedLeaderElection(t *testing.T) {
	for _, tc := range []struct {
		name string
		need *bool
		want bool
	}{
		{"true by default", nil, true},
		{"true", ptr.To(true), true},
		{"false", ptr.To(false), false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := newController(t, &recorder{}, mccontroller.Options{NeedLeaderElection: tc.need})
			NewWithT(t).Expect(c.(manager.LeaderElectionRunnable).NeedLeaderElection()).To(Equal(tc.want))
		})
	}
}

func TestMisuse(t *testing.T) {
	g := NewWithT(t)
	mgr := newManager(t)
	_, err := mccontroller.NewUnmanaged("test", mgr, mccontroller.Options{})
	g.Expect(err).To(MatchError(ContainSubstring("Reconciler")))
	_, err = mccontroller.NewUnmanaged("", mgr, mccontroller.Options{Reconciler: &recorder{}})
	g.Expect(err).To(MatchError(ContainSubstring("Name")))
}

// run starts a controller with one source and one cluster, eu.
func run(t *testing.T, r mcreconcile.Reconciler, options mccontroller.Options) (mccontroller.Controller, *fakeSource) {
	t.Helper()
	g := NewWithT(t)
	c := newController(t, r, options)
	src := newFakeSource("a")
	g.Expect(c.MultiClusterWatch(src)).To(Succeed())
	start(t, c)
	g.Expect(c.Engage(t.Context(), multicluster.ClusterName("eu"), &fakeCluster{})).To(Succeed())
	synctest.Wait()
	return c, src
}
