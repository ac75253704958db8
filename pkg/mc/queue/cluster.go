// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"time"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
)

// state is what the queue still has to do with an entry.
type state int

const (
	// idle: nothing; a worker has the entry, or it is about to be removed.
	idle state = iota
	// delayed: it becomes waiting at its readyAt.
	delayed
	// waiting: it is for the next worker that may take it.
	waiting
)

// entry is a request that is queued, with a worker, or both.
type entry[request comparable] struct {
	key     request
	cluster *cluster[request]

	state    state
	priority int
	lane     *lane[request] // of the priority, unless idle
	seq      uint64         // order of arrival
	readyAt  time.Time      // while delayed

	// processing is true from Get to Done. An entry that waits meanwhile is
	// not among those of its lane.
	processing bool
	// charged is the lane that it was taken from, while processing.
	charged *lane[request]
	// dropped is true while processing if the cluster was dropped since Get.
	dropped bool

	// addedAt and startedAt are kept for metrics only.
	addedAt, startedAt time.Time

	// place is the entry's slot among the delayed or in its lane.
	place int
}

func (e *entry[request]) slot() *int { return &e.place }

// before orders the delayed by time, then by arrival, and a lane by arrival.
func (e *entry[request]) before(other *entry[request]) bool {
	if e.state == delayed && !e.readyAt.Equal(other.readyAt) {
		return e.readyAt.Before(other.readyAt)
	}
	return e.seq < other.seq
}

// cluster is what the queue knows of a cluster that has entries or holds.
type cluster[request comparable] struct {
	name    multicluster.ClusterName
	entries map[request]*entry[request]
	holds   sets.Set[HoldReason]
	depth   Depth

	// lanes by priority; order has those with entries to take, the highest
	// priority first.
	lanes map[int]*lane[request]
	order heap[*lane[request]]

	place int
}

func (c *cluster[request]) slot() *int { return &c.place }

// before orders clusters that may be served: by the highest priority that each
// has, then by the worker time used at that priority, then by turn.
func (c *cluster[request]) before(other *cluster[request]) bool {
	a, b := c.order[0], other.order[0]
	if a.priority != b.priority {
		return a.priority > b.priority
	}
	if a.level != b.level {
		return a.level < b.level
	}
	return a.turn < b.turn
}

// join puts an entry into its lane. If the lane is empty, it gets the turn.
func (c *cluster[request]) join(e *entry[request], turn uint64) {
	l := e.lane
	if len(l.entries) == 0 {
		l.begin()
		l.turn = turn
		l.refresh(l.usedAt)
		c.order.insert(l)
	}
	l.entries.insert(e)
}

// leave takes an entry out of its lane.
func (c *cluster[request]) leave(e *entry[request]) {
	l := e.lane
	l.entries.remove(e)
	if len(l.entries) == 0 {
		c.order.remove(l)
	}
}

// next takes the entry out of its lane that is to be served first, and gives
// the lane the turn.
func (c *cluster[request]) next(turn uint64) *entry[request] {
	l := c.order[0]
	l.turn = turn
	e := l.entries[0]
	c.leave(e)
	return e
}

// clear takes all entries out of their lanes.
func (c *cluster[request]) clear() {
	for _, l := range c.order {
		l.place = 0
		for _, e := range l.entries {
			e.place = 0
		}
		l.entries = nil
	}
	c.order = nil
}
