// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"time"

	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
)

// The methods of this file change entries and clusters. Whoever changes a
// cluster calls settleLocked for it before touching another.

// clusterLocked returns the state of a cluster, which it creates if need be.
func (q *Queue[request]) clusterLocked(clusterName multicluster.ClusterName) *cluster[request] {
	c, ok := q.clusters[clusterName]
	if !ok {
		c = &cluster[request]{name: clusterName, entries: map[request]*entry[request]{}}
		q.clusters[clusterName] = c
	}
	return c
}

// settleLocked brings a cluster that has changed to its place among those to
// be served, forgets it if nothing is left of it, and wakes who waits.
func (q *Queue[request]) settleLocked(c *cluster[request]) {
	capped := q.maxPerCluster > 0 && c.depth.Processing >= q.maxPerCluster
	servable := len(c.order) > 0 && len(c.holds) == 0 && !capped
	switch {
	case servable && c.place == 0:
		q.turns.insert(c)
	case servable:
		q.turns.fix(c)
	case c.place != 0:
		q.turns.remove(c)
	}
	if len(c.entries) == 0 && len(c.holds) == 0 {
		delete(q.clusters, c.name)
	}
	q.wakeLocked()
}

// firstLocked returns the cluster that is to be served first, of those in
// turns. Levels rise with the time, unseen, but do not fall. So once the first
// is up to date, it is before all others, whether they are or not. A lane that
// is moved has used a quantum of worker time since it was moved before, or has
// not competed, so there are few of them.
func (q *Queue[request]) firstLocked(now time.Duration) *cluster[request] {
	for {
		c := q.turns[0]
		if !c.order[0].refresh(now) {
			return c
		}
		q.turns.fix(c)
	}
}

// takeLocked hands out the entry that is to be served first.
func (q *Queue[request]) takeLocked() *entry[request] {
	now := q.now()
	c := q.firstLocked(now)
	e := c.next(q.nextTurnLocked())
	e.charged, e.lane = e.lane, nil
	e.charged.start(now)
	e.state = idle
	e.processing = true
	c.depth.Waiting--
	c.depth.Processing++
	q.waiting--
	q.processing++
	q.metrics.got(e)
	q.settleLocked(c)
	return e
}

// joinLaneLocked makes an entry a member of its cluster's lane of a priority,
// which it creates if need be.
func (q *Queue[request]) joinLaneLocked(e *entry[request], priority int) {
	c := e.cluster
	l, ok := c.lanes[priority]
	if !ok {
		b, ok := q.bands[priority]
		if !ok {
			b = &band{}
			q.bands[priority] = b
		}
		b.lanes++
		l = &lane[request]{priority: priority, band: b}
		if c.lanes == nil {
			c.lanes = make(map[int]*lane[request], 1)
		}
		c.lanes[priority] = l
	}
	l.members++
	e.priority, e.lane = priority, l
}

// leaveLaneLocked ends an entry's membership of a lane, and with the last one
// the lane.
func (q *Queue[request]) leaveLaneLocked(c *cluster[request], l *lane[request]) {
	l.members--
	if l.members > 0 {
		return
	}
	delete(c.lanes, l.priority)
	l.band.lanes--
	if l.band.lanes == 0 {
		delete(q.bands, l.priority)
	}
}

// readyLocked makes an idle or delayed entry wait for a worker.
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
		c.join(e, q.nextTurnLocked())
	}
}

// delayLocked makes an idle entry wait until a time, and a delayed one until
// that time at most.
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

// raiseLocked gives a queued entry a higher priority. It goes behind those
// that have that priority already.
func (q *Queue[request]) raiseLocked(e *entry[request], priority int) {
	inLane := e.state == waiting && !e.processing
	if inLane {
		e.cluster.leave(e)
	}
	if e.state == waiting {
		q.metrics.raised(e.priority, priority)
	}
	q.leaveLaneLocked(e.cluster, e.lane)
	q.joinLaneLocked(e, priority)
	e.seq = q.nextSeqLocked()
	switch {
	case inLane:
		e.cluster.join(e, q.nextTurnLocked())
	case e.state == delayed:
		q.delayed.fix(e)
	}
}

func (q *Queue[request]) nextSeqLocked() uint64 {
	q.lastSeq++
	return q.lastSeq
}

func (q *Queue[request]) nextTurnLocked() uint64 {
	q.lastTurn++
	return q.lastTurn
}

// now is the time since the queue began.
func (q *Queue[request]) now() time.Duration {
	return q.clock.Since(q.began)
}
