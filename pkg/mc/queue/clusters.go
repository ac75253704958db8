// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
)

// Depth is the number of requests that a queue has of one cluster.
type Depth struct {
	// Waiting requests are due and wait for a worker. Their cluster may be
	// paused or at its limit, or a worker may still have the same request.
	Waiting int
	// Delayed requests were added with a delay or rate limited and are not due.
	Delayed int
	// Processing requests are with a worker: they were handed out and are not
	// Done.
	Processing int
}

// Depth returns the number of requests of a cluster. A request that was added
// again while a worker has it counts as Processing and as Waiting or Delayed.
func (q *Queue[request]) Depth(clusterName multicluster.ClusterName) Depth {
	q.mu.Lock()
	defer q.mu.Unlock()

	if c, ok := q.clusters[clusterName]; ok {
		return c.depth
	}
	return Depth{}
}

// PauseReason is a reason to pause a cluster, such as "syncing". Each component
// that pauses clusters uses a reason of its own, so it does not resume a cluster
// that another one has paused.
type PauseReason string

// Pause keeps the requests of a cluster from workers until Resume has been
// called for each reason. Requests are still added, deduplicated and counted,
// delays continue, and workers may finish what they have. A cluster can be
// paused before it has requests. To pause it twice with the same reason is the
// same as once.
func (q *Queue[request]) Pause(clusterName multicluster.ClusterName, reason PauseReason) {
	q.mu.Lock()
	c := q.clusterLocked(clusterName)
	if c.paused == nil {
		c.paused = sets.New[PauseReason]()
	}
	c.paused.Insert(reason)
	q.updateLocked(c)
	q.mu.Unlock()

	q.log.V(4).Info("Paused requests of cluster", "cluster", clusterName, "reason", reason)
}

// Resume ends a pause for this reason, if there is one.
func (q *Queue[request]) Resume(clusterName multicluster.ClusterName, reason PauseReason) {
	q.mu.Lock()
	c, ok := q.clusters[clusterName]
	if !ok || !c.paused.Has(reason) {
		q.mu.Unlock()
		return
	}
	c.paused.Delete(reason)
	q.updateLocked(c)
	q.mu.Unlock()

	q.log.V(4).Info("Resumed requests of cluster", "cluster", clusterName, "reason", reason)
}

// SetMaxPerCluster changes Options.MaxPerCluster. Workers keep what they have
// until Done.
func (q *Queue[request]) SetMaxPerCluster(limit int) {
	q.mu.Lock()
	defer q.mu.Unlock()

	q.maxPerCluster = limit
	for _, c := range q.clusters {
		q.updateLocked(c)
	}
}

// Drop removes the waiting and delayed requests of a cluster and ends its
// pauses. Workers keep what they have until Done, and it counts towards
// MaxPerCluster and worker time until then, but requeues of it are ignored; see
// the package comment. Requests for the cluster can be added again at once.
//
// The backoff of all these requests is reset. The queue does not know a request
// that is neither queued nor with a worker, so the backoff of one that was not
// forgotten (controller-runtime does not do so after a reconcile.TerminalError)
// remains in the rate limiter.
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
		q.dropLocked(e)
	}
	c.paused = nil
	q.updateLocked(c)
	q.mu.Unlock()

	for _, key := range keys {
		q.rateLimiter.Forget(key)
	}
	q.log.V(4).Info("Dropped requests of cluster", "cluster", clusterName, "requests", len(keys))
}

// Dropped reports whether a worker has the request and its cluster was dropped
// since Get. A worker can skip such a request.
func (q *Queue[request]) Dropped(item request) bool {
	clusterName := q.clusterOf(item)
	q.mu.Lock()
	defer q.mu.Unlock()

	e := q.processingLocked(clusterName, item)
	return e != nil && e.dropped
}

// dropLocked removes an entry of a cluster whose subqueues have been cleared.
func (q *Queue[request]) dropLocked(e *entry[request]) {
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
		q.releaseLocked(e.cluster, e.subqueue)
	}
	e.state, e.subqueue = idle, nil
	if e.processing {
		e.dropped = true
		return
	}
	delete(e.cluster.entries, e.key)
}
