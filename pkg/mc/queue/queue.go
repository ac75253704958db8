// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"

	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
)

var _ priorityqueue.PriorityQueue[int] = (*Queue[int])(nil)

// Queue is a priority queue that is fair to clusters. All methods may be
// called from any goroutine.
type Queue[request comparable] struct {
	clusterOf   func(request) multicluster.ClusterName
	rateLimiter workqueue.TypedRateLimiter[request]
	log         logr.Logger
	clock       clock.WithTicker
	began       time.Time

	// rescheduled tells the timer loop that another entry is due first.
	rescheduled chan struct{}
	// stop ends the timer loop.
	stop     chan struct{}
	stopOnce sync.Once
	loop     sync.WaitGroup

	// mu guards all that follows, and the clusters, lanes and entries.
	mu sync.Mutex
	// changed wakes workers in Get, and callers of ShutDownWithDrain.
	changed sync.Cond

	maxPerCluster int
	clusters      map[multicluster.ClusterName]*cluster[request]
	// turns has the clusters that a worker may take an entry of right now.
	turns heap[*cluster[request]]
	// bands by priority, of those priorities that there are lanes of.
	bands map[int]*band
	// delayed has the delayed entries of all clusters.
	delayed heap[*entry[request]]
	metrics *metrics[request]

	lastSeq, lastTurn   uint64
	waiting, processing int
	phase               phase
}

// New returns a queue. It runs until ShutDown. The name is that of the
// controller, and labels the queue's metrics; a queue without one has none.
func New[request comparable](name string, options Options[request]) *Queue[request] {
	options.setDefaults()

	q := &Queue[request]{
		clusterOf:     options.ClusterOf,
		maxPerCluster: options.MaxPerCluster,
		rateLimiter:   options.RateLimiter,
		log:           options.Log,
		clock:         options.Clock,
		began:         options.Clock.Now(),
		rescheduled:   make(chan struct{}, 1),
		stop:          make(chan struct{}),
		clusters:      map[multicluster.ClusterName]*cluster[request]{},
		bands:         map[int]*band{},
		metrics:       newMetrics[request](name, options.MetricProvider, options.Clock, options.Log),
	}
	q.changed.L = &q.mu
	q.loop.Go(q.run)
	return q
}

// Add adds a request that is due at once, with priority 0.
func (q *Queue[request]) Add(item request) {
	q.add(priorityqueue.AddOpts{}, item)
}

// AddAfter adds a request that is due after the duration, with priority 0.
// Of several times asked for, the earliest holds.
func (q *Queue[request]) AddAfter(item request, duration time.Duration) {
	q.add(priorityqueue.AddOpts{After: duration}, item)
}

// AddRateLimited adds a request that is due when the rate limiter says so,
// with priority 0.
func (q *Queue[request]) AddRateLimited(item request) {
	q.add(priorityqueue.AddOpts{RateLimited: true}, item)
}

// AddWithOpts adds requests. Of a delay and a rate limit, the shorter holds. A
// request that is queued already keeps the higher of its priorities and the
// earlier of its times. Nothing is added once the queue is shutting down, nor
// may an add be a requeue of a request whose cluster was dropped; see the
// package comment.
func (q *Queue[request]) AddWithOpts(opts priorityqueue.AddOpts, items ...request) {
	for _, item := range items {
		q.add(opts, item)
	}
}

// AddFromSource is AddWithOpts for a source of a cluster that is there: what it
// adds is no requeue, also with a delay or rate limited, and is never ignored
// because the cluster was dropped.
func (q *Queue[request]) AddFromSource(opts priorityqueue.AddOpts, items ...request) {
	for _, item := range items {
		q.addAs(opts, item, false)
	}
}

func (q *Queue[request]) add(opts priorityqueue.AddOpts, key request) {
	q.addAs(opts, key, opts.RateLimited || opts.After > 0)
}

// addAs adds a request, which may be the requeue of one that a worker has.
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
	kept := q.enqueue(q.clusterOf(key), key, ptr.Deref(opts.Priority, 0), delay, requeue)
	if !kept && opts.RateLimited {
		q.rateLimiter.Forget(key)
	}
}

// enqueue adds a request, unless it is the requeue of one that was dropped:
// then it returns false.
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
		q.joinLaneLocked(e, priority)
		e.seq = q.nextSeqLocked()
	case priority > e.priority:
		q.raiseLocked(e, priority)
	}
	switch {
	case e.state == waiting:
	case delay <= 0:
		q.readyLocked(e)
	default:
		q.delayLocked(e, q.clock.Now().Add(delay))
	}
	q.settleLocked(c)
	return true
}

// GetWithPriority blocks until there is a request that the caller may process,
// and returns it with its priority. The caller must call Done with it
// afterwards. If shutdown is true there is no request, nor will there be.
func (q *Queue[request]) GetWithPriority() (item request, priority int, shutdown bool) {
	q.mu.Lock()
	defer q.mu.Unlock()

	for q.phase != closed {
		if len(q.turns) > 0 {
			e := q.takeLocked()
			return e.key, e.priority, false
		}
		q.changed.Wait()
	}
	return item, 0, true
}

// Get is GetWithPriority for callers that do not care for the priority.
func (q *Queue[request]) Get() (item request, shutdown bool) {
	item, _, shutdown = q.GetWithPriority()
	return item, shutdown
}

// Done tells that a request from Get has been processed. If it was added again
// meanwhile, it is now served again. Done does nothing for any other request.
func (q *Queue[request]) Done(item request) {
	clusterName := q.clusterOf(item)
	q.mu.Lock()
	defer q.mu.Unlock()

	c, ok := q.clusters[clusterName]
	if !ok {
		return
	}
	e, ok := c.entries[item]
	if !ok || !e.processing {
		return
	}
	q.metrics.done(e)
	if e.state == waiting {
		// Before the account is told, as the lane has not been idle.
		c.join(e, q.nextTurnLocked())
	}
	e.charged.stop(q.now())
	q.leaveLaneLocked(c, e.charged)
	e.processing, e.dropped, e.charged = false, false, nil
	c.depth.Processing--
	q.processing--
	if e.state == idle {
		delete(c.entries, item)
	}
	q.settleLocked(c)
}

// Forget ends a request's backoff. It does not remove the request.
func (q *Queue[request]) Forget(item request) { q.rateLimiter.Forget(item) }

// NumRequeues returns how often a request was added rate limited since its
// last Forget.
func (q *Queue[request]) NumRequeues(item request) int { return q.rateLimiter.NumRequeues(item) }

// Len returns how many requests are due, over all clusters: those of clusters
// that are held or at their cap too, and those that a worker has and that were
// added again. Delayed requests do not count.
func (q *Queue[request]) Len() int {
	q.mu.Lock()
	defer q.mu.Unlock()

	return q.waiting
}
