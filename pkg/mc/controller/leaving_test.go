// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"

	mccontroller "github.com/rollcall-dev/rollcall/pkg/mc/controller"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
	mcreconcile "github.com/rollcall-dev/rollcall/pkg/mc/reconcile"
	mcsource "github.com/rollcall-dev/rollcall/pkg/mc/source"
)

// busyWorker blocks the worker that has a request for the object before the
// reconciler is called.
type busyWorker struct {
	object string
	has    chan mcreconcile.Request
	resume chan struct{}
}

func newBusyWorker(object string) *busyWorker {
	return &busyWorker{object: object, has: make(chan mcreconcile.Request), resume: make(chan struct{})}
}

// log is a LogConstructor, which the worker calls before the reconciler.
func (w *busyWorker) log(req *mcreconcile.Request) logr.Logger {
	if req != nil && req.Name == w.object {
		w.has <- *req
		<-w.resume
	}
	return logr.Discard()
}

func TestClusterLeavesBeforeReconcileBegins(t *testing.T) {
	for _, tc := range []struct {
		name       string
		priorities *bool
	}{
		{"by default", nil},
		{"without the priority queue", ptr.To(false)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := NewWithT(t)
				rec, worker := &recorder{}, newBusyWorker("a")
				c := newController(t, rec, mccontroller.Options{LogConstructor: worker.log, UsePriorityQueue: tc.priorities})
				src := newFakeSource("a")
				g.Expect(c.MultiClusterWatch(src)).To(Succeed())
				start(t, c)
				g.Expect(c.Engage(t.Context(), "us", &fakeCluster{})).To(Succeed())
				g.Expect(<-worker.has).To(Equal(request("us", "a")))
				worker.resume <- struct{}{}
				ctx, leave := context.WithCancel(t.Context())
				g.Expect(c.Engage(ctx, "eu", &fakeCluster{})).To(Succeed())
				g.Expect(<-worker.has).To(Equal(request("eu", "a")))

				leave()
				synctest.Wait()
				// A source of another cluster may still add requests for it.
				src.enqueueFor("us", request("eu", "b"))
				worker.resume <- struct{}{}
				synctest.Wait()
				g.Expect(rec.seen()).To(Equal([]string{"us/a", "eu/b"}))
			})
		})
	}
}

func TestLeftEventDuringReconcile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		rec, worker := &recorder{}, newBusyWorker("")
		c := newController(t, rec, mccontroller.Options{LogConstructor: worker.log})
		g.Expect(c.Watch(mcsource.ClusterLifecycle())).To(Succeed())
		start(t, c)
		ctx, leave := context.WithCancel(t.Context())
		g.Expect(c.Engage(ctx, "eu", &fakeCluster{})).To(Succeed())
		g.Expect(<-worker.has).To(Equal(request("eu", "")), "joined")

		leave()
		synctest.Wait()
		worker.resume <- struct{}{}
		g.Expect(<-worker.has).To(Equal(request("eu", "")), "left")
		g.Expect(rec.seen()).To(BeEmpty())
		worker.resume <- struct{}{}
		synctest.Wait()
		g.Expect(rec.seen()).To(Equal([]string{"eu/"}))
	})
}

func TestRequestOfClusterNotEngagedAfterOthersLeft(t *testing.T) {
	for _, cluster := range []multicluster.ClusterName{"", "elsewhere"} {
		synctest.Test(t, func(t *testing.T) {
			g := NewWithT(t)
			rec, worker := &recorder{}, newBusyWorker("b")
			c := newController(t, rec, mccontroller.Options{LogConstructor: worker.log})
			src := newFakeSource("a")
			g.Expect(c.MultiClusterWatch(src)).To(Succeed())
			start(t, c)
			ctx, leave := context.WithCancel(t.Context())
			g.Expect(c.Engage(ctx, "eu", &fakeCluster{})).To(Succeed())
			synctest.Wait()
			src.enqueueFor("eu", request(cluster, "b"))
			g.Expect(<-worker.has).To(Equal(request(cluster, "b")))
			leave()
			synctest.Wait()
			worker.resume <- struct{}{}
			synctest.Wait()
			g.Expect(rec.seen()).To(Equal([]string{"eu/a", cluster.String() + "/b"}))
		})
	}
}

func TestEndedEngagementReplacesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		c := newController(t, &recorder{}, mccontroller.Options{})
		src := newFakeSource("a")
		g.Expect(c.MultiClusterWatch(src)).To(Succeed())
		start(t, c)
		g.Expect(c.Engage(t.Context(), "eu", &fakeCluster{})).To(Succeed())
		synctest.Wait()
		ended, end := context.WithCancel(t.Context())
		end()
		g.Expect(c.Engage(ended, "eu", &fakeCluster{})).To(Succeed())
		synctest.Wait()
		g.Expect(src.running("eu")).To(Equal(1))
		g.Expect(src.attempts("eu")).To(Equal(1), "the first one")
	})
}
