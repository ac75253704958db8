// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"time"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
)

// cluster is the state of a cluster that has entries or is paused.
type cluster[request comparable] struct {
	name    multicluster.ClusterName
	entries map[request]*entry[request]
	paused  sets.Set[PauseReason]
	depth   Depth

	// subqueues by priority, and those of them that have entries for workers,
	// the highest priority first.
	subqueues map[int]*subqueue[request]
	active    heap[*subqueue[request]]

	heapIndex int // in Queue.ready
}

func (c *cluster[request]) position() *int { return &c.heapIndex }

// before orders clusters that can be served: by the highest priority that each
// has, then by rank, then the one served least recently.
func (c *cluster[request]) before(other *cluster[request]) bool {
	a, b := c.active[0], other.active[0]
	if a.level != b.level {
		return a.level.priority > b.level.priority
	}
	if a.rank != b.rank {
		return a.rank < b.rank
	}
	return a.lastServed < b.lastServed
}

// push offers an entry to workers. The sequence number is new.
func (c *cluster[request]) push(e *entry[request], sequence uint64) {
	s := e.subqueue
	if len(s.entries) == 0 {
		s.activate(sequence)
		c.active.insert(s)
	}
	s.entries.insert(e)
}

// remove undoes push.
func (c *cluster[request]) remove(e *entry[request]) {
	s := e.subqueue
	s.entries.remove(e)
	if len(s.entries) == 0 {
		c.active.remove(s)
	}
}

// pop removes the entry to be served next. The sequence number is new.
func (c *cluster[request]) pop(sequence uint64) *entry[request] {
	s := c.active[0]
	s.lastServed = sequence
	e := s.entries[0]
	c.remove(e)
	return e
}

// clear undoes push for all entries.
func (c *cluster[request]) clear() {
	for _, s := range c.active {
		s.heapIndex = 0
		for _, e := range s.entries {
			e.heapIndex = 0
		}
		s.entries = nil
	}
	c.active = nil
}

// entry is a request that is queued, with a worker, or both.
type entry[request comparable] struct {
	key     request
	cluster *cluster[request]

	state    state
	priority int
	subqueue *subqueue[request] // of the priority; nil if idle
	sequence uint64             // orders entries by arrival
	readyAt  time.Time          // while delayed

	// processing is true from Get to Done. In that time the entry may be
	// waiting, but it is not offered to workers.
	processing bool
	// servedFrom is the subqueue that accounts for the worker, while processing.
	servedFrom *subqueue[request]
	// dropped is true while processing if the cluster was dropped since Get.
	dropped bool

	// addedAt and startedAt are for metrics only.
	addedAt, startedAt time.Time

	heapIndex int // in Queue.delayed or in the subqueue
}

// state is the state of an entry in the queue, whether or not a worker has it.
type state int

const (
	// idle: not queued. A worker has the entry, or it is about to be deleted.
	idle state = iota
	// delayed: not due. It becomes waiting at its readyAt.
	delayed
	// waiting: due.
	waiting
)

func (e *entry[request]) position() *int { return &e.heapIndex }

// before orders delayed entries by time, then by arrival, and the entries of a
// subqueue by arrival.
func (e *entry[request]) before(other *entry[request]) bool {
	if e.state == delayed && !e.readyAt.Equal(other.readyAt) {
		return e.readyAt.Before(other.readyAt)
	}
	return e.sequence < other.sequence
}
