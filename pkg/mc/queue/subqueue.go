// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package queue

import "time"

const (
	// quantum is the unit of rank. Subqueues of the same rank are served
	// round-robin.
	quantum = 50 * time.Millisecond
	// maxDebt limits how far the worker time of a subqueue is ahead of the
	// virtual time of its priority once its requests are Done.
	maxDebt = 30 * time.Second
	// maxCredit limits how far the worker time of a subqueue falls behind the
	// virtual time while others are served and it cannot compete: its cluster
	// is paused, at its limit, or has requests of a higher priority. It exceeds
	// the few quanta by which a subqueue that competes falls behind.
	maxCredit = 10 * quantum
)

// subqueue holds the requests of one cluster that have the same priority, and
// accounts for the worker time that they use. It exists while a request is
// queued in it, delayed ones included, or with a worker that took it from here.
type subqueue[request comparable] struct {
	level *priorityLevel
	// refs counts the entries for which the subqueue exists.
	refs int

	// entries are those that a worker may take.
	entries heap[*entry[request]]
	// heapIndex is the position in the heap of the cluster, which has the
	// subqueues with entries.
	heapIndex int

	// workerTime is the worker time used until updated. Since then it has grown
	// at the rate of running, the number of entries that workers have.
	workerTime, updated time.Duration
	running             int

	// The subqueue with the lowest rank is served next, and of several with the
	// same rank the one with the lowest lastServed. The rank may be out of date:
	// it may have increased since it was updated, but not decreased. lastServed
	// is a sequence number.
	rank       int64
	lastServed uint64
}

// priorityLevel is the state that the subqueues of one priority share.
type priorityLevel struct {
	priority int
	// virtualTime is the highest worker time that a subqueue had when it was
	// served. A subqueue that was idle continues from here, so it has saved up
	// nothing.
	virtualTime time.Duration
	// refs counts the subqueues of the priority.
	refs int
}

func (s *subqueue[request]) position() *int { return &s.heapIndex }

func (s *subqueue[request]) before(other *subqueue[request]) bool {
	return s.level.priority > other.level.priority
}

// activate prepares a subqueue without entries for its first one.
func (s *subqueue[request]) activate(sequence uint64) {
	if s.running == 0 {
		s.workerTime = max(s.workerTime, s.level.virtualTime)
	}
	s.lastServed = sequence
	s.updateRank(s.updated)
}

// start accounts for an entry that a worker takes.
func (s *subqueue[request]) start(now time.Duration) {
	s.workerTime, s.updated = s.workerTimeAt(now), now
	s.level.virtualTime = max(s.level.virtualTime, s.workerTime)
	s.running++
	s.updateRank(now)
}

// stop accounts for an entry that a worker is done with.
func (s *subqueue[request]) stop(now time.Duration) {
	s.workerTime, s.updated = min(s.workerTimeAt(now), s.level.virtualTime+maxDebt), now
	s.running--
	s.updateRank(now)
}

// updateRank updates the rank and reports whether it has changed. An entry that
// a worker has counts one quantum more than its time so far: until its duration
// is known, a cluster with slow requests must not get many workers.
func (s *subqueue[request]) updateRank(now time.Duration) bool {
	before := s.rank
	s.rank = int64(s.workerTimeAt(now)/quantum) + int64(s.running)
	return s.rank != before
}

// workerTimeAt returns the worker time used until now.
func (s *subqueue[request]) workerTimeAt(now time.Duration) time.Duration {
	used := s.workerTime + time.Duration(s.running)*(now-s.updated)
	return max(used, s.level.virtualTime-maxCredit)
}
