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
	seq      uint64    // order of arrival
	readyAt  time.Time // while delayed

	// processing is true from Get to Done. An entry that waits meanwhile is
	// in no lane.
	processing bool
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

// lane holds the entries of one cluster and one priority that a worker may
// take. A lane is never empty.
type lane[request comparable] struct {
	priority int
	// turn grows each time that the lane is served: the lowest is next.
	turn    uint64
	entries heap[*entry[request]]
	place   int
}

func (l *lane[request]) slot() *int                       { return &l.place }
func (l *lane[request]) before(other *lane[request]) bool { return l.priority > other.priority }

// cluster is what the queue knows of a cluster that has entries or holds.
type cluster[request comparable] struct {
	name    multicluster.ClusterName
	entries map[request]*entry[request]
	holds   sets.Set[HoldReason]
	depth   Depth

	// lanes by priority; order has the same lanes, the highest first.
	lanes map[int]*lane[request]
	order heap[*lane[request]]

	place int
}

func (c *cluster[request]) slot() *int { return &c.place }

// before orders clusters that may be served: by the highest priority that each
// has, then by turn.
func (c *cluster[request]) before(other *cluster[request]) bool {
	a, b := c.order[0], other.order[0]
	if a.priority != b.priority {
		return a.priority > b.priority
	}
	return a.turn < b.turn
}

// join puts an entry into its lane. A new lane's turn is the one given.
func (c *cluster[request]) join(e *entry[request], turn uint64) {
	l, ok := c.lanes[e.priority]
	if !ok {
		l = &lane[request]{priority: e.priority, turn: turn}
		if c.lanes == nil {
			c.lanes = make(map[int]*lane[request], 1)
		}
		c.lanes[e.priority] = l
		c.order.insert(l)
	}
	l.entries.insert(e)
}

// leave takes an entry out of its lane.
func (c *cluster[request]) leave(e *entry[request]) {
	l := c.lanes[e.priority]
	l.entries.remove(e)
	if len(l.entries) == 0 {
		delete(c.lanes, l.priority)
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
