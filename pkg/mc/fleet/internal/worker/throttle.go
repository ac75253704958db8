// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"container/list"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/rollcall-dev/rollcall/pkg/mc/internal/retry"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
)

// immediateChanges is how many changes in a row are followed at once.
const immediateChanges = 5

// Throttle decides how soon the cluster of one name is connected again after a
// failure or a change. Failures wait for a delay that doubles each time. The first
// changes are followed at once; without a limit, two writers of a profile, or two
// clusters behind one address, would have the cluster engaged and listed as fast as
// it responds. It is used by one goroutine at a time.
type Throttle struct {
	min, max  time.Duration
	failures  wait.Backoff
	changes   wait.Backoff
	immediate int       // changes left that are followed at once
	next      time.Time // when the next change may be followed
	used      bool      // by a worker before
}

// NewThrottle returns a Throttle with delays from the first to the limit.
func NewThrottle(first, limit time.Duration) *Throttle {
	t := &Throttle{min: first, max: limit}
	t.Reset()
	return t
}

// Begin is called by each new worker. It reports whether the worker follows a
// change: to add a profile again counts as one.
func (t *Throttle) Begin() (isChange bool) {
	isChange = t.used
	t.used = true
	return isChange
}

// Reset makes the next failure wait for the shortest delay.
func (t *Throttle) Reset() { t.failures = retry.Backoff(t.min, t.max) }

// Failed returns the delay after a failure.
func (t *Throttle) Failed() time.Duration { return t.failures.Step() }

// UntilChange returns how long a change has to wait before it is followed.
func (t *Throttle) UntilChange(now time.Time) time.Duration { return max(0, t.next.Sub(now)) }

// FollowChange notes that a change is followed now.
func (t *Throttle) FollowChange(now time.Time) {
	if t.IsIdle(now) {
		t.immediate, t.changes = immediateChanges, retry.Backoff(t.min, t.max)
	}
	t.Reset()
	t.immediate--
	t.next = now
	if t.immediate <= 0 {
		t.next = now.Add(t.changes.Step())
	}
}

// IsIdle reports whether there has been no change for the longest delay.
func (t *Throttle) IsIdle(now time.Time) bool { return now.Sub(t.next) > t.max }

// Throttles has the Throttle of each cluster name, until it has not been used for
// the longest delay. Its methods may be called concurrently.
type Throttles struct {
	min, max time.Duration

	mu     sync.Mutex // guards what follows
	byName map[multicluster.ClusterName]*throttleUse
	unused list.List // of those without users, in the order of their last use
}

// throttleUse is a Throttle with the number of its users.
type throttleUse struct {
	name     multicluster.ClusterName
	throttle *Throttle
	users    int
	lastUse  time.Time
	unused   *list.Element // nil if there are users
}

// NewThrottles returns Throttles with delays from the first to the limit.
func NewThrottles(first, limit time.Duration) *Throttles {
	return &Throttles{min: first, max: limit, byName: map[multicluster.ClusterName]*throttleUse{}}
}

// Acquire returns the Throttle of the name. It must be released.
func (t *Throttles) Acquire(name multicluster.ClusterName, now time.Time) *Throttle {
	t.mu.Lock()
	defer t.mu.Unlock()
	for first := t.unused.Front(); first != nil; first = t.unused.Front() {
		old := first.Value.(*throttleUse)
		if now.Sub(old.lastUse) <= t.max || !old.throttle.IsIdle(now) {
			break
		}
		t.unused.Remove(first)
		delete(t.byName, old.name)
	}
	use := t.byName[name]
	if use == nil {
		use = &throttleUse{name: name, throttle: NewThrottle(t.min, t.max)}
		t.byName[name] = use
	} else if use.unused != nil {
		t.unused.Remove(use.unused)
		use.unused = nil
	}
	use.users++
	return use.throttle
}

// Release ends one use of the name's Throttle.
func (t *Throttles) Release(name multicluster.ClusterName, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	use := t.byName[name]
	use.users--
	use.lastUse = now
	if use.users == 0 {
		use.unused = t.unused.PushBack(use)
	}
}
