// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package handler

import (
	"context"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
)

// translator adapts a handler of inner requests to a queue of outer requests.
type translator[object client.Object, inner, outer comparable] struct {
	handler handler.TypedEventHandler[object, inner]
	to      func(inner) outer
	from    func(outer) inner
}

func (t *translator[object, inner, outer]) Create(ctx context.Context, e event.TypedCreateEvent[object], q workqueue.TypedRateLimitingInterface[outer]) {
	t.handler.Create(ctx, e, t.queue(q))
}

func (t *translator[object, inner, outer]) Update(ctx context.Context, e event.TypedUpdateEvent[object], q workqueue.TypedRateLimitingInterface[outer]) {
	t.handler.Update(ctx, e, t.queue(q))
}

func (t *translator[object, inner, outer]) Delete(ctx context.Context, e event.TypedDeleteEvent[object], q workqueue.TypedRateLimitingInterface[outer]) {
	t.handler.Delete(ctx, e, t.queue(q))
}

func (t *translator[object, inner, outer]) Generic(ctx context.Context, e event.TypedGenericEvent[object], q workqueue.TypedRateLimitingInterface[outer]) {
	t.handler.Generic(ctx, e, t.queue(q))
}

// queue adapts the outer queue to inner requests. The result is a priority queue
// exactly if the outer queue is one, since handlers check for that.
func (t *translator[object, inner, outer]) queue(q workqueue.TypedRateLimitingInterface[outer]) workqueue.TypedRateLimitingInterface[inner] {
	plain := translatedQueue[inner, outer]{outer: q, to: t.to, from: t.from}
	if priority, ok := q.(priorityqueue.PriorityQueue[outer]); ok {
		return translatedPriorityQueue[inner, outer]{translatedQueue: plain, priority: priority}
	}
	return plain
}

// translatedQueue is a queue of inner requests on a queue of outer requests.
type translatedQueue[inner, outer comparable] struct {
	outer workqueue.TypedRateLimitingInterface[outer]
	to    func(inner) outer
	from  func(outer) inner
}

func (q translatedQueue[inner, outer]) Add(item inner) { q.outer.Add(q.to(item)) }
func (q translatedQueue[inner, outer]) AddAfter(item inner, d time.Duration) {
	q.outer.AddAfter(q.to(item), d)
}
func (q translatedQueue[inner, outer]) AddRateLimited(item inner) { q.outer.AddRateLimited(q.to(item)) }
func (q translatedQueue[inner, outer]) Forget(item inner)         { q.outer.Forget(q.to(item)) }
func (q translatedQueue[inner, outer]) NumRequeues(item inner) int {
	return q.outer.NumRequeues(q.to(item))
}
func (q translatedQueue[inner, outer]) Done(item inner)    { q.outer.Done(q.to(item)) }
func (q translatedQueue[inner, outer]) Len() int           { return q.outer.Len() }
func (q translatedQueue[inner, outer]) ShutDown()          { q.outer.ShutDown() }
func (q translatedQueue[inner, outer]) ShutDownWithDrain() { q.outer.ShutDownWithDrain() }
func (q translatedQueue[inner, outer]) ShuttingDown() bool { return q.outer.ShuttingDown() }

func (q translatedQueue[inner, outer]) Get() (inner, bool) {
	item, shutdown := q.outer.Get()
	return q.from(item), shutdown
}

// translatedPriorityQueue is a translatedQueue with priorities.
type translatedPriorityQueue[inner, outer comparable] struct {
	translatedQueue[inner, outer]
	priority priorityqueue.PriorityQueue[outer]
}

func (q translatedPriorityQueue[inner, outer]) AddWithOpts(opts priorityqueue.AddOpts, items ...inner) {
	translated := make([]outer, len(items))
	for i, item := range items {
		translated[i] = q.to(item)
	}
	q.priority.AddWithOpts(opts, translated...)
}

func (q translatedPriorityQueue[inner, outer]) GetWithPriority() (inner, int, bool) {
	item, priority, shutdown := q.priority.GetWithPriority()
	return q.from(item), priority, shutdown
}
