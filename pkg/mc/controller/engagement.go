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

	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
	mcreconcile "github.com/rollcall-dev/rollcall/pkg/mc/reconcile"
	mcsource "github.com/rollcall-dev/rollcall/pkg/mc/source"
)

// engagement is the engagement of one cluster with a controller.
type engagement[request mcreconcile.ClusterAware[request]] struct {
	controller *mcController[request]
	name       multicluster.ClusterName
	cluster    cluster.Cluster
	shared     *multicluster.Engagement
	parent     context.Context // the provider's, to recognize a repeated call of Engage
	ctx        context.Context // the engagement's own: ends with parent or with end
	cancel     context.CancelFunc

	// unsynced has the queues of the sources that have not synced, in the order
	// in which they were added. The controller's lock guards it and unhealthy.
	unsynced  []*engagedQueue[request]
	unhealthy bool

	mu    sync.RWMutex // guards ended; held for reading while a source enqueues
	ended bool
}

var _ multicluster.Component = &engagement[mcreconcile.Request]{}

func newEngagement[request mcreconcile.ClusterAware[request]](parent context.Context, c *mcController[request], name multicluster.ClusterName, cl cluster.Cluster) *engagement[request] {
	e := &engagement[request]{controller: c, name: name, cluster: cl, shared: multicluster.EngagementFrom(parent), parent: parent}
	e.ctx, e.cancel = context.WithCancel(parent)
	return e
}

// SetClusterHealthy implements multicluster.Component: the requests of a
// cluster that does not answer wait, and take no worker.
func (e *engagement[request]) SetClusterHealthy(healthy bool) {
	c := e.controller
	c.mu.Lock()
	defer c.mu.Unlock()
	e.unhealthy = !healthy
	if c.engagements[e.name] == e {
		c.holdUnhealthyLocked(e)
	}
}

// ClusterBacklog implements multicluster.Component.
func (e *engagement[request]) ClusterBacklog() int {
	c := e.controller
	c.mu.RLock()
	defer c.mu.RUnlock()
	if c.engagements[e.name] != e {
		return 0
	}
	return ClusterStatus{Queue: c.depthLocked(e.name)}.backlog()
}

// end stops the sources. When it has returned, none of them enqueues.
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
	if len(e.unsynced) == 1 && c.clusters != nil {
		c.clusters.Pause(e.name, syncing)
	}
	// Requested now, the start shares the startup slot in which the cluster was
	// connected.
	start := e.shared.RequestStart()
	c.running.Go(func() {
		if c.startSource(src, q, start) {
			c.sourceSynced(q)
		}
	})
}

func (c *mcController[request]) sourceSynced(q *engagedQueue[request]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := q.engagement
	e.unsynced = slices.DeleteFunc(e.unsynced, func(other *engagedQueue[request]) bool { return other == q })
	if len(e.unsynced) > 0 {
		return
	}
	e.unsynced = nil
	if c.clusters != nil && c.engagements[e.name] == e {
		c.clusters.Resume(e.name, syncing)
	}
}

// sourceFailed records why a source could not start or has not synced. It reports
// whether that has changed.
func (c *mcController[request]) sourceFailed(q *engagedQueue[request], err error) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	changed := q.lastError != err.Error()
	q.lastError = err.Error()
	return changed
}

// lastErrorLocked returns the first error of a source that has not synced, "" if
// there is none.
func (e *engagement[request]) lastErrorLocked() string {
	for _, q := range e.unsynced {
		if q.lastError != "" {
			return q.lastError
		}
	}
	return ""
}

// engagedQueue is the controller's queue for one source of an engagement. It
// ignores what the source adds after the engagement has ended.
type engagedQueue[request mcreconcile.ClusterAware[request]] struct {
	priorityqueue.PriorityQueue[request]
	add        addFunc[request]
	engagement *engagement[request]
	lastError  string // of the source; the controller's lock guards it
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
