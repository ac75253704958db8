// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package handler_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	mchandler "github.com/rollcall-dev/rollcall/pkg/mc/handler"
	mcreconcile "github.com/rollcall-dev/rollcall/pkg/mc/reconcile"
)

type bareQueue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// handle calls see with the queue that a handler of controller-runtime gets.
func handle(t *testing.T, q workqueue.TypedRateLimitingInterface[mcreconcile.Request], see func(bareQueue)) {
	t.Helper()
	seen := 0
	mchandler.ForCluster(handler.Funcs{
		GenericFunc: func(_ context.Context, _ event.GenericEvent, q bareQueue) {
			seen++
			see(q)
		},
	}, "eu").Generic(t.Context(), event.GenericEvent{Object: pod("a")}, q)
	NewWithT(t).Expect(seen).To(Equal(1))
}

func TestTranslatedQueueType(t *testing.T) {
	for _, tc := range []struct {
		name  string
		queue workqueue.TypedRateLimitingInterface[mcreconcile.Request]
		want  bool
	}{
		{"without priorities", &plainQueue[mcreconcile.Request]{}, false},
		{"with priorities", &priorityQueue[mcreconcile.Request]{}, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			handle(t, tc.queue, func(q bareQueue) {
				_, ok := q.(priorityqueue.PriorityQueue[reconcile.Request])
				NewWithT(t).Expect(ok).To(Equal(tc.want))
			})
		})
	}
}

func TestTranslatedOptions(t *testing.T) {
	g := NewWithT(t)
	q := &priorityQueue[mcreconcile.Request]{}
	handle(t, q, func(q bareQueue) {
		q.(priorityqueue.PriorityQueue[reconcile.Request]).AddWithOpts(
			priorityqueue.AddOpts{Priority: ptr.To(handler.LowPriority), After: time.Minute, RateLimited: true},
			bare("ns", "a"), bare("ns", "b"))
	})
	g.Expect(q.added).To(Equal([]string{"cluster://eu/ns/a low after 1m0s limited", "cluster://eu/ns/b low after 1m0s limited"}))
}

// loggingQueue records calls.
type loggingQueue struct {
	priorityqueue.PriorityQueue[mcreconcile.Request]
	calls []string
}

func (q *loggingQueue) log(call string, args ...any) {
	q.calls = append(q.calls, fmt.Sprintf("%s%v", call, args))
}

func (q *loggingQueue) Add(r mcreconcile.Request)            { q.log("Add", r) }
func (q *loggingQueue) AddRateLimited(r mcreconcile.Request) { q.log("AddRateLimited", r) }
func (q *loggingQueue) Forget(r mcreconcile.Request)         { q.log("Forget", r) }
func (q *loggingQueue) Done(r mcreconcile.Request)           { q.log("Done", r) }
func (q *loggingQueue) ShutDown()                            { q.log("ShutDown") }
func (q *loggingQueue) ShutDownWithDrain()                   { q.log("ShutDownWithDrain") }
func (q *loggingQueue) ShuttingDown() bool                   { q.log("ShuttingDown"); return true }
func (q *loggingQueue) Len() int                             { q.log("Len"); return 42 }

func (q *loggingQueue) AddAfter(r mcreconcile.Request, d time.Duration) {
	q.log("AddAfter", r, d)
}

func (q *loggingQueue) NumRequeues(r mcreconcile.Request) int {
	q.log("NumRequeues", r)
	return 7
}

func (q *loggingQueue) Get() (mcreconcile.Request, bool) {
	q.log("Get")
	return request("eu", "ns", "got"), true
}

func (q *loggingQueue) GetWithPriority() (mcreconcile.Request, int, bool) {
	q.log("GetWithPriority")
	return request("eu", "ns", "got"), 3, true
}

func TestTranslatedCalls(t *testing.T) {
	type priorities = priorityqueue.PriorityQueue[reconcile.Request]
	a := bare("ns", "a")
	for _, tc := range []struct {
		call string
		do   func(g Gomega, q priorities)
	}{
		{"Add[cluster://eu/ns/a]", func(_ Gomega, q priorities) { q.Add(a) }},
		{"AddRateLimited[cluster://eu/ns/a]", func(_ Gomega, q priorities) { q.AddRateLimited(a) }},
		{"AddAfter[cluster://eu/ns/a 1s]", func(_ Gomega, q priorities) { q.AddAfter(a, time.Second) }},
		{"Forget[cluster://eu/ns/a]", func(_ Gomega, q priorities) { q.Forget(a) }},
		{"Done[cluster://eu/ns/a]", func(_ Gomega, q priorities) { q.Done(a) }},
		{"ShutDown[]", func(_ Gomega, q priorities) { q.ShutDown() }},
		{"ShutDownWithDrain[]", func(_ Gomega, q priorities) { q.ShutDownWithDrain() }},
		{"ShuttingDown[]", func(g Gomega, q priorities) { g.Expect(q.ShuttingDown()).To(BeTrue()) }},
		{"Len[]", func(g Gomega, q priorities) { g.Expect(q.Len()).To(Equal(42)) }},
		{"NumRequeues[cluster://eu/ns/a]", func(g Gomega, q priorities) { g.Expect(q.NumRequeues(a)).To(Equal(7)) }},
		{"Get[]", func(g Gomega, q priorities) {
			got, shutdown := q.Get()
			g.Expect(got).To(Equal(bare("ns", "got")))
			g.Expect(shutdown).To(BeTrue())
		}},
		{"GetWithPriority[]", func(g Gomega, q priorities) {
			got, priority, shutdown := q.GetWithPriority()
			g.Expect(got).To(Equal(bare("ns", "got")))
			g.Expect(priority).To(Equal(3))
			g.Expect(shutdown).To(BeTrue())
		}},
	} {
		t.Run(tc.call, func(t *testing.T) {
			g := NewWithT(t)
			outer := &loggingQueue{}
			handle(t, outer, func(q bareQueue) { tc.do(g, q.(priorities)) })
			g.Expect(outer.calls).To(Equal([]string{tc.call}))
		})
	}
}

func TestHandlerContext(t *testing.T) {
	type key struct{}
	ctx := context.WithValue(t.Context(), key{}, "value")
	for _, event := range []string{"create", "update", "delete", "generic"} {
		t.Run(event, func(t *testing.T) {
			var got any
			h := mchandler.EnqueueRequestsFromMapFunc(func(ctx context.Context, _ client.Object) []reconcile.Request {
				got = ctx.Value(key{})
				return nil
			})("eu", fakeCluster{})
			events(ctx, h, pod("a"), pod("a"), &plainQueue[mcreconcile.Request]{})[event]()
			NewWithT(t).Expect(got).To(Equal("value"))
		})
	}
}
