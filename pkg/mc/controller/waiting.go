// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const (
	// waitRetry is the delay after which a request that waits for a channel is
	// retried anyway.
	waitRetry = 10 * time.Minute

	// waitLimitRetry is that delay if maxParked others wait.
	waitLimitRetry = 30 * time.Second
)

// waiting has the requests that wait for a channel to be closed, such as until a cache
// is fresh. The zero value is empty.
type waiting[request comparable] struct {
	groups map[<-chan struct{}]*waitGroup[request]
	until  map[request]<-chan struct{}
}

// waitGroup has the requests that wait for one channel.
type waitGroup[request comparable] struct {
	requests map[request]struct{}
	cancel   context.CancelFunc // ends the goroutine that waits
}

func (w *waiting[request]) has(req request) bool {
	_, ok := w.until[req]
	return ok
}

func (w *waiting[request]) remove(req request) {
	until, ok := w.until[req]
	if !ok {
		return
	}
	delete(w.until, req)
	group := w.groups[until]
	delete(group.requests, req)
	if len(group.requests) == 0 {
		group.cancel()
		delete(w.groups, until)
	}
}

// drop removes the requests that the function is true for.
func (w *waiting[request]) drop(of func(request) bool) {
	for req := range w.until {
		if of(req) {
			w.remove(req)
		}
	}
}

// await enqueues the request again when the channel is closed, unless it is
// reconciled before. The engagement is that of the request's own cluster, nil if
// there is none. The result is that of the reconcile that ends now.
func (c *mcController[request]) await(req request, of *engagement[request], until <-chan struct{}) reconcile.Result {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := &c.waiting
	switch {
	case c.stopped, of != nil && c.engagements[of.name] != of:
		return reconcile.Result{}
	case len(w.until) >= maxParked:
		return reconcile.Result{RequeueAfter: waitLimitRetry}
	}
	if w.until == nil {
		w.groups, w.until = map[<-chan struct{}]*waitGroup[request]{}, map[request]<-chan struct{}{}
	}
	group := w.groups[until]
	if group == nil {
		ctx, cancel := context.WithCancel(context.Background())
		group = &waitGroup[request]{requests: map[request]struct{}{}, cancel: cancel}
		w.groups[until] = group
		c.running.Go(func() { c.awaitGroup(ctx, until, group) })
	}
	group.requests[req], w.until[req] = struct{}{}, until
	return reconcile.Result{RequeueAfter: waitRetry}
}

// awaitGroup enqueues the requests of a group when the channel is closed.
func (c *mcController[request]) awaitGroup(ctx context.Context, until <-chan struct{}, group *waitGroup[request]) {
	select {
	case <-ctx.Done():
		return
	case <-until:
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for req := range group.requests {
		c.waiting.remove(req)
		c.queue.Add(req)
	}
	group.cancel()
}
