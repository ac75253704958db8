// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
)

// HoldReason names why a cluster is held. Each owner of holds has a reason of
// its own ("syncing", "degraded"), so that none can undo another's.
type HoldReason string

// Depth counts what a queue has of one cluster.
type Depth struct {
	// Waiting requests are due. They wait for a worker, for the cluster's
	// turn, for a worker that has the same request, or for Resume.
	Waiting int
	// Delayed requests were added with a delay or rate limited and are not due.
	Delayed int
	// Processing requests are with a worker: handed out and not Done.
	Processing int
}

// Depth returns what the queue has of a cluster. It is zero for a cluster that
// the queue knows nothing of. A request counts as Processing and again as
// Waiting or Delayed if it was added while a worker has it.
func (q *Queue[request]) Depth(clusterName multicluster.ClusterName) Depth {
	q.mu.Lock()
	defer q.mu.Unlock()

	if c, ok := q.clusters[clusterName]; ok {
		return c.depth
	}
	return Depth{}
}

// Hold keeps a cluster's requests from workers until Resume has been called
// with the same reason, for every reason that was given. They are still added,
// deduplicated and counted, delays run on, and those already with a worker may
// finish. A cluster can be held before it has any request, and for the same
// reason only once: to repeat it changes nothing.
func (q *Queue[request]) Hold(clusterName multicluster.ClusterName, reason HoldReason) {
	q.mu.Lock()
	c := q.clusterLocked(clusterName)
	if c.holds == nil {
		c.holds = sets.New[HoldReason]()
	}
	c.holds.Insert(reason)
	q.settleLocked(c)
	q.mu.Unlock()

	q.log.V(4).Info("Holding cluster", "cluster", clusterName, "reason", reason)
}

// Resume ends the hold that has this reason. It does nothing if there is none.
func (q *Queue[request]) Resume(clusterName multicluster.ClusterName, reason HoldReason) {
	q.mu.Lock()
	c, ok := q.clusters[clusterName]
	if !ok || !c.holds.Has(reason) {
		q.mu.Unlock()
		return
	}
	c.holds.Delete(reason)
	q.settleLocked(c)
	q.mu.Unlock()

	q.log.V(4).Info("Resuming cluster", "cluster", clusterName, "reason", reason)
}

// SetMaxPerCluster replaces the bound of Options.MaxPerCluster from now on: what
// workers have they keep until Done.
func (q *Queue[request]) SetMaxPerCluster(limit int) {
	q.mu.Lock()
	defer q.mu.Unlock()

	q.maxPerCluster = limit
	for _, c := range q.clusters {
		q.settleLocked(c)
	}
}

// Drop removes a cluster: all of its waiting and delayed requests, and its
// holds. Requests that are with a worker stay with it until Done and count
// towards the cap and its worker time until then, but what that worker requeues
// is ignored; see the package comment. The cluster may be used again at once,
// as a new one.
//
// The rate limiter forgets all of these requests. One that is neither queued
// nor with a worker, and that was not forgotten when it was Done
// (controller-runtime does not after a reconcile.TerminalError), is not known
// to the queue, and stays known to the rate limiter.
func (q *Queue[request]) Drop(clusterName multicluster.ClusterName) {
	q.mu.Lock()
	c, ok := q.clusters[clusterName]
	if !ok {
		q.mu.Unlock()
		return
	}
	c.clear()
	keys := make([]request, 0, len(c.entries))
	for key, e := range c.entries {
		keys = append(keys, key)
		q.discardLocked(e)
	}
	c.holds = nil
	q.settleLocked(c)
	q.mu.Unlock()

	for _, key := range keys {
		q.rateLimiter.Forget(key)
	}
	q.log.V(4).Info("Dropped cluster", "cluster", clusterName, "requests", len(keys))
}

// Dropped tells whether a request is with a worker and its cluster was dropped
// since it was handed out. A worker that has yet to begin can leave it then.
func (q *Queue[request]) Dropped(item request) bool {
	clusterName := q.clusterOf(item)
	q.mu.Lock()
	defer q.mu.Unlock()

	c, ok := q.clusters[clusterName]
	if !ok {
		return false
	}
	e, ok := c.entries[item]
	return ok && e.dropped
}

// discardLocked removes an entry of a cluster that is dropped, and whose lanes
// are cleared.
func (q *Queue[request]) discardLocked(e *entry[request]) {
	switch e.state {
	case delayed:
		q.delayed.remove(e)
		e.cluster.depth.Delayed--
	case waiting:
		e.cluster.depth.Waiting--
		q.waiting--
		q.metrics.removed(e)
	}
	if e.state != idle {
		q.leaveLaneLocked(e.cluster, e.lane)
	}
	e.state, e.lane = idle, nil
	if e.processing {
		e.dropped = true
		return
	}
	delete(e.cluster.entries, e.key)
}
