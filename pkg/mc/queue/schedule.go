// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"time"

	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
)

// The methods of this file change entries and clusters. A caller that has
// changed a cluster calls updateLocked before it changes another one.

// clusterLocked returns the state of a cluster and creates it if needed.
func (q *Queue[request]) clusterLocked(clusterName multicluster.ClusterName) *cluster[request] {
	c, ok := q.clusters[clusterName]
	if !ok {
		c = &cluster[request]{name: clusterName, entries: map[request]*entry[request]{}}
		q.clusters[clusterName] = c
	}
	return c
}

// processingLocked returns the entry of a request that a worker has, or nil.
func (q *Queue[request]) processingLocked(clusterName multicluster.ClusterName, item request) *entry[request] {
	c, ok := q.clusters[clusterName]
	if !ok {
		return nil
	}
	if e, ok := c.entries[item]; ok && e.processing {
		return e
	}
	return nil
}

// updateLocked updates the position of a changed cluster among those that are
// ready, deletes the cluster if it is empty, and wakes workers.
func (q *Queue[request]) updateLocked(c *cluster[request]) {
	atLimit := q.maxPerCluster > 0 && c.depth.Processing >= q.maxPerCluster
	ready := len(c.active) > 0 && len(c.paused) == 0 && !atLimit
	switch {
	case ready && c.heapIndex == 0:
		q.ready.insert(c)
	case ready:
		q.ready.fix(c)
	case c.heapIndex != 0:
		q.ready.remove(c)
	}
	if len(c.entries) == 0 && len(c.paused) == 0 {
		delete(q.clusters, c.name)
	}
	q.wakeLocked()
}

// nextClusterLocked returns the ready cluster to be served next. Ranks that are
// out of date are too low. So once the rank of the first cluster is up to date,
// the cluster precedes all others, whether their ranks are up to date or not. A
// rank is out of date only if the subqueue has used a quantum of worker time or
// could not compete, so the loop has few rounds.
func (q *Queue[request]) nextClusterLocked(now time.Duration) *cluster[request] {
	for {
		c := q.ready[0]
		if !c.active[0].updateRank(now) {
			return c
		}
		q.ready.fix(c)
	}
}

// takeLocked hands out the entry to be served next.
func (q *Queue[request]) takeLocked() *entry[request] {
	now := q.now()
	c := q.nextClusterLocked(now)
	e := c.pop(q.nextSequenceLocked())
	e.servedFrom, e.subqueue = e.subqueue, nil
	e.servedFrom.start(now)
	e.state = idle
	e.processing = true
	c.depth.Waiting--
	c.depth.Processing++
	q.waiting--
	q.processing++
	q.metrics.got(e)
	q.updateLocked(c)
	return e
}

// assignLocked assigns an entry to its cluster's subqueue of a priority.
func (q *Queue[request]) assignLocked(e *entry[request], priority int) {
	c := e.cluster
	s, ok := c.subqueues[priority]
	if !ok {
		level, ok := q.levels[priority]
		if !ok {
			level = &priorityLevel{priority: priority}
			q.levels[priority] = level
		}
		level.refs++
		s = &subqueue[request]{level: level}
		if c.subqueues == nil {
			c.subqueues = make(map[int]*subqueue[request], 1)
		}
		c.subqueues[priority] = s
	}
	s.refs++
	e.priority, e.subqueue = priority, s
}

// releaseLocked undoes assignLocked for an entry of the subqueue.
func (q *Queue[request]) releaseLocked(c *cluster[request], s *subqueue[request]) {
	s.refs--
	if s.refs > 0 {
		return
	}
	delete(c.subqueues, s.level.priority)
	s.level.refs--
	if s.level.refs == 0 {
		delete(q.levels, s.level.priority)
	}
}

// readyLocked makes an idle or delayed entry waiting.
func (q *Queue[request]) readyLocked(e *entry[request]) {
	c := e.cluster
	if e.state == delayed {
		q.delayed.remove(e)
		c.depth.Delayed--
	}
	e.state = waiting
	c.depth.Waiting++
	q.waiting++
	q.metrics.added(e)
	if !e.processing {
		c.push(e, q.nextSequenceLocked())
	}
}

// delayLocked makes an idle entry delayed until a time. Of a delayed entry it
// brings the time forward.
func (q *Queue[request]) delayLocked(e *entry[request], readyAt time.Time) {
	switch {
	case e.state == idle:
		e.state, e.readyAt = delayed, readyAt
		e.cluster.depth.Delayed++
		q.delayed.insert(e)
	case readyAt.Before(e.readyAt):
		e.readyAt = readyAt
		q.delayed.fix(e)
	default:
		return
	}
	if q.delayed[0] == e {
		select {
		case q.rescheduled <- struct{}{}:
		default:
		}
	}
}

// raiseLocked gives a queued entry a higher priority. The entry goes behind
// those that already have it.
func (q *Queue[request]) raiseLocked(e *entry[request], priority int) {
	offered := e.state == waiting && !e.processing
	if offered {
		e.cluster.remove(e)
	}
	if e.state == waiting {
		q.metrics.raised(e.priority, priority)
	}
	q.releaseLocked(e.cluster, e.subqueue)
	q.assignLocked(e, priority)
	e.sequence = q.nextSequenceLocked()
	switch {
	case offered:
		e.cluster.push(e, q.nextSequenceLocked())
	case e.state == delayed:
		q.delayed.fix(e)
	}
}

func (q *Queue[request]) nextSequenceLocked() uint64 {
	q.lastSequence++
	return q.lastSequence
}

// now returns the time since the queue was created.
func (q *Queue[request]) now() time.Duration {
	return time.Since(q.started)
}
