// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"slices"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"

	"github.com/rollcall-dev/rollcall/pkg/mc/internal/identity"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
	mcreconcile "github.com/rollcall-dev/rollcall/pkg/mc/reconcile"
	mcsource "github.com/rollcall-dev/rollcall/pkg/mc/source"
)

// engagement is one cluster's stay with a controller.
type engagement[request mcreconcile.ClusterAware[request]] struct {
	name    multicluster.ClusterName
	cluster cluster.Cluster
	parent  context.Context // as given to Engage, to tell a repeated call
	ctx     context.Context // ends with parent or with end
	cancel  context.CancelFunc

	// unsynced has the queue of each source that has not synced, in the order in
	// which they were added. The controller's lock guards what is up to mu.
	unsynced  []*engagedQueue[request]
	synced    chan struct{} // closed while unsynced is empty; replaced when it no longer is
	unhealthy bool          // does not answer

	mu    sync.RWMutex // guards ended; held for reading while a source enqueues
	ended bool
}

func newEngagement[request mcreconcile.ClusterAware[request]](parent context.Context, name multicluster.ClusterName, cl cluster.Cluster) *engagement[request] {
	e := &engagement[request]{name: name, cluster: cl, parent: parent}
	e.ctx, e.cancel = context.WithCancel(parent)
	e.synced = make(chan struct{})
	close(e.synced)
	return e
}

// end stops the sources. When it returns, none of them enqueues any more.
func (e *engagement[request]) end() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.ended = true
	e.cancel()
}

// enqueue runs add unless the engagement has ended.
func (e *engagement[request]) enqueue(add func()) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	if !e.ended {
		add()
	}
}

// watchLocked starts the source in the cluster and holds the cluster's requests
// until it has synced.
func (c *mcController[request]) watchLocked(e *engagement[request], src mcsource.TypedSource[client.Object, request]) {
	if c.stopped {
		return
	}
	q := &engagedQueue[request]{PriorityQueue: c.queue, add: c.addFromSource, engagement: e}
	e.unsynced = append(e.unsynced, q)
	if len(e.unsynced) == 1 {
		e.synced = make(chan struct{})
		if c.clusters != nil {
			c.clusters.Pause(e.name, syncing)
		}
	}
	c.running.Go(func() {
		if c.startSource(e, src, q) {
			c.sourceSynced(e, q)
		}
	})
}

func (c *mcController[request]) sourceSynced(e *engagement[request], q *engagedQueue[request]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e.unsynced = slices.DeleteFunc(e.unsynced, func(other *engagedQueue[request]) bool { return other == q })
	if len(e.unsynced) > 0 {
		return
	}
	e.unsynced = nil
	close(e.synced)
	if c.clusters != nil && c.engagements[e.name] == e {
		c.clusters.Resume(e.name, syncing)
	}
}

// WaitForClusterSync implements multicluster.SyncWaiter.
func (c *mcController[request]) WaitForClusterSync(ctx context.Context, name multicluster.ClusterName, cl cluster.Cluster) {
	c.mu.RLock()
	e := c.engagements[name]
	if e == nil || !identity.Same(e.cluster, cl) {
		c.mu.RUnlock()
		return
	}
	synced := e.synced
	c.mu.RUnlock()
	select {
	case <-synced:
	case <-e.ctx.Done():
	case <-ctx.Done():
	}
}

// sourceFailed notes why a source could not start or has not synced, and tells
// whether that is news.
func (c *mcController[request]) sourceFailed(q *engagedQueue[request], err error) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	news := q.lastError != err.Error()
	q.lastError = err.Error()
	return news
}

// lastErrorLocked returns what keeps the first of those sources that have not
// synced and of which that is known, "" if there is none.
func (e *engagement[request]) lastErrorLocked() string {
	for _, q := range e.unsynced {
		if q.lastError != "" {
			return q.lastError
		}
	}
	return ""
}

// engagedQueue is the controller's queue for the sources of one engagement:
// once that has ended, what they add is ignored.
type engagedQueue[request mcreconcile.ClusterAware[request]] struct {
	priorityqueue.PriorityQueue[request]
	add        addFunc[request]
	engagement *engagement[request]
	lastError  string // why the source could not start or has not synced; the controller's lock guards it
}

func (q *engagedQueue[request]) Add(item request) {
	q.AddWithOpts(priorityqueue.AddOpts{}, item)
}

func (q *engagedQueue[request]) AddAfter(item request, duration time.Duration) {
	q.AddWithOpts(priorityqueue.AddOpts{After: duration}, item)
}

func (q *engagedQueue[request]) AddRateLimited(item request) {
	q.AddWithOpts(priorityqueue.AddOpts{RateLimited: true}, item)
}

func (q *engagedQueue[request]) AddWithOpts(opts priorityqueue.AddOpts, items ...request) {
	q.engagement.enqueue(func() { q.add(opts, items...) })
}
