// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package queue

import "time"

const (
	// quantum is the step in which clusters' worker time is compared. Those
	// within a step are served strictly in turn.
	quantum = 50 * time.Millisecond
	// maxLead bounds how far a cluster that has used more worker time than
	// others has to wait for them, once its requests are Done.
	maxLead = 30 * time.Second
	// maxLag bounds how far a cluster stays behind others that were served
	// while it did not compete: it was held, at its cap, or had requests of a
	// higher priority. Workers make a cluster that does compete fall behind by
	// a few quanta, which it may catch up with.
	maxLag = 10 * quantum
)

// band is what the lanes of one priority share.
type band struct {
	// served is the most worker time that a lane had used when it was served.
	// A lane that has been idle goes on from there: idling saves nothing up.
	served time.Duration
	lanes  int
}

// lane is one cluster's part of one priority: the entries that a worker may
// take, and an account of the worker time that they take. It exists while an
// entry is queued with the priority, or with a worker that got it with that.
type lane[request comparable] struct {
	priority int
	band     *band
	// members counts the entries for which the lane exists.
	members int

	// entries are those that a worker may take. The lane is in its cluster's
	// order, at place, while there are any.
	entries heap[*entry[request]]
	place   int

	// used is the worker time used until usedAt. Since then it has grown with
	// the time for each of those running, the entries that a worker has.
	used, usedAt time.Duration
	running      int

	// level and turn say when the lane is next: the lowest level first, and
	// within a level the lowest turn. The level is as of when it was last
	// looked at, and may have risen since, but never fallen. The turn grows
	// each time that the lane is served.
	level int64
	turn  uint64
}

func (l *lane[request]) slot() *int                       { return &l.place }
func (l *lane[request]) before(other *lane[request]) bool { return l.priority > other.priority }

// begin accounts for the time until the lane has an entry to take.
func (l *lane[request]) begin() {
	if l.running == 0 {
		l.used = max(l.used, l.band.served)
	}
}

// start accounts for an entry that a worker takes.
func (l *lane[request]) start(now time.Duration) {
	l.used, l.usedAt = l.usedBy(now), now
	l.band.served = max(l.band.served, l.used)
	l.running++
	l.refresh(now)
}

// stop accounts for an entry that a worker is done with.
func (l *lane[request]) stop(now time.Duration) {
	l.used, l.usedAt = min(l.usedBy(now), l.band.served+maxLead), now
	l.running--
	l.refresh(now)
}

// refresh brings the level up to date, and tells whether it was not. An entry
// that a worker has counts for a quantum more than its time so far: it is not
// known yet how long it takes, and a cluster whose entries take long should
// not get many workers before that shows.
func (l *lane[request]) refresh(now time.Duration) bool {
	before := l.level
	l.level = int64(l.usedBy(now)/quantum) + int64(l.running)
	return l.level != before
}

// usedBy returns the worker time used until a time.
func (l *lane[request]) usedBy(now time.Duration) time.Duration {
	used := l.used + time.Duration(l.running)*(now-l.usedAt)
	return max(used, l.band.served-maxLag)
}
