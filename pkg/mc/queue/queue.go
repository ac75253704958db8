// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"

	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
)

var _ priorityqueue.PriorityQueue[int] = (*Queue[int])(nil)

// Queue is a priority queue that is fair to clusters. All methods may be called
// from any goroutine.
type Queue[request comparable] struct {
	clusterOf   func(request) multicluster.ClusterName
	rateLimiter workqueue.TypedRateLimiter[request]
	log         logr.Logger
	started     time.Time

	// rescheduled wakes the loop when another delayed entry is due first.
	rescheduled chan struct{}
	// stop ends the loop.
	stop     chan struct{}
	stopOnce sync.Once
	loop     sync.WaitGroup

	// mu guards all that follows, and the clusters, subqueues and entries.
	mu sync.Mutex
	// changed wakes workers in Get and callers of ShutDownWithDrain.
	changed sync.Cond

	maxPerCluster int
	clusters      map[multicluster.ClusterName]*cluster[request]
	// ready has the clusters that a worker may take an entry of now.
	ready heap[*cluster[request]]
	// levels by priority, of the priorities for which subqueues exist.
	levels map[int]*priorityLevel
	// delayed has the delayed entries of all clusters.
	delayed heap[*entry[request]]
	metrics *metrics[request]

	lastSequence        uint64
	waiting, processing int
	phase               phase
}

// New returns a queue that runs until ShutDown. The name is that of the
// controller and labels the metrics; a queue without a name has no metrics.
func New[request comparable](name string, options Options[request]) *Queue[request] {
	options.setDefaults()

	q := &Queue[request]{
		clusterOf:     options.ClusterOf,
		maxPerCluster: options.MaxPerCluster,
		rateLimiter:   options.RateLimiter,
		log:           options.Log,
		started:       time.Now(),
		rescheduled:   make(chan struct{}, 1),
		stop:          make(chan struct{}),
		clusters:      map[multicluster.ClusterName]*cluster[request]{},
		levels:        map[int]*priorityLevel{},
		metrics:       newMetrics[request](name, options.MetricProvider, options.Log),
	}
	q.changed.L = &q.mu
	q.loop.Go(q.run)
	return q
}

// Add adds a request that is due at once, with priority 0.
func (q *Queue[request]) Add(item request) {
	q.add(priorityqueue.AddOpts{}, item)
}

// AddAfter adds a request that is due after the duration, with priority 0. If
// it is added with several delays, the earliest time applies.
func (q *Queue[request]) AddAfter(item request, duration time.Duration) {
	q.add(priorityqueue.AddOpts{After: duration}, item)
}

// AddRateLimited adds a request that is due after the delay of the rate limiter,
// with priority 0.
func (q *Queue[request]) AddRateLimited(item request) {
	q.add(priorityqueue.AddOpts{RateLimited: true}, item)
}

// AddWithOpts adds requests. Of a delay and a rate limit, the shorter applies. A
// request that is already queued keeps the higher priority and the earlier time.
// Adds are ignored when the queue is shutting down, and those that requeue a
// request of a dropped cluster; see the package comment.
func (q *Queue[request]) AddWithOpts(opts priorityqueue.AddOpts, items ...request) {
	for _, item := range items {
		q.add(opts, item)
	}
}

// AddFromSource is AddWithOpts for the sources of a cluster. Adds with a delay
// or a rate limit do not count as requeues, so they are not ignored after Drop.
func (q *Queue[request]) AddFromSource(opts priorityqueue.AddOpts, items ...request) {
	for _, item := range items {
		q.addAs(opts, item, false)
	}
}

func (q *Queue[request]) add(opts priorityqueue.AddOpts, key request) {
	q.addAs(opts, key, opts.RateLimited || opts.After > 0)
}

// addAs adds a request. A requeue is ignored if the cluster was dropped while a
// worker had the request.
func (q *Queue[request]) addAs(opts priorityqueue.AddOpts, key request, requeue bool) {
	delay := opts.After
	if opts.RateLimited {
		if q.ShuttingDown() {
			return
		}
		if limit := q.rateLimiter.When(key); delay == 0 || limit < delay {
			delay = limit
		}
	}
	added := q.enqueue(q.clusterOf(key), key, ptr.Deref(opts.Priority, 0), delay, requeue)
	if !added && opts.RateLimited {
		q.rateLimiter.Forget(key)
	}
}

// enqueue reports whether the add was not an ignored requeue.
func (q *Queue[request]) enqueue(clusterName multicluster.ClusterName, key request, priority int, delay time.Duration, requeue bool) bool {
	q.mu.Lock()
	defer q.mu.Unlock()

	if q.phase != open {
		return true
	}
	c := q.clusterLocked(clusterName)
	e, ok := c.entries[key]
	if !ok {
		e = &entry[request]{key: key, cluster: c}
		c.entries[key] = e
	}
	if e.dropped && requeue {
		return false
	}
	if delay > 0 {
		q.metrics.retried()
	}

	switch {
	case e.state == idle:
		q.assignLocked(e, priority)
		e.sequence = q.nextSequenceLocked()
	case priority > e.priority:
		q.raiseLocked(e, priority)
	}
	switch {
	case e.state == waiting:
	case delay <= 0:
		q.readyLocked(e)
	default:
		q.delayLocked(e, time.Now().Add(delay))
	}
	q.updateLocked(c)
	return true
}

// GetWithPriority blocks until there is a request to process and returns it with
// its priority. The caller must call Done with it afterwards. If shutdown is
// true, there is no request and there will be none.
func (q *Queue[request]) GetWithPriority() (item request, priority int, shutdown bool) {
	q.mu.Lock()
	defer q.mu.Unlock()

	for q.phase != closed {
		if len(q.ready) > 0 {
			e := q.takeLocked()
			return e.key, e.priority, false
		}
		q.changed.Wait()
	}
	return item, 0, true
}

// Get is GetWithPriority without the priority.
func (q *Queue[request]) Get() (item request, shutdown bool) {
	item, _, shutdown = q.GetWithPriority()
	return item, shutdown
}

// Done marks a request from Get as processed. If it was added again since Get,
// it can now be served again. For other requests Done does nothing.
func (q *Queue[request]) Done(item request) {
	clusterName := q.clusterOf(item)
	q.mu.Lock()
	defer q.mu.Unlock()

	e := q.processingLocked(clusterName, item)
	if e == nil {
		return
	}
	c := e.cluster
	q.metrics.done(e)
	if e.state == waiting {
		// Before stop, since the subqueue has not been idle.
		c.push(e, q.nextSequenceLocked())
	}
	e.servedFrom.stop(q.now())
	q.releaseLocked(c, e.servedFrom)
	e.processing, e.dropped, e.servedFrom = false, false, nil
	c.depth.Processing--
	q.processing--
	if e.state == idle {
		delete(c.entries, item)
	}
	q.updateLocked(c)
}

// Forget resets the backoff of a request. It does not remove the request.
func (q *Queue[request]) Forget(item request) { q.rateLimiter.Forget(item) }

// NumRequeues returns how many rate-limited adds the request had since its last
// Forget.
func (q *Queue[request]) NumRequeues(item request) int { return q.rateLimiter.NumRequeues(item) }

// Len returns the number of requests that are due, of all clusters. It includes
// requests of clusters that are paused or at their limit, and requests that were
// added again while a worker has them. It does not include delayed requests.
func (q *Queue[request]) Len() int {
	q.mu.Lock()
	defer q.mu.Unlock()

	return q.waiting
}
