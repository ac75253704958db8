// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

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

// NewThrottle returns a Throttle with delays between min and max.
func NewThrottle(min, max time.Duration) *Throttle {
	t := &Throttle{min: min, max: max}
	t.Reset()
	return t
}

// NewBackoff returns delays that double from min to max, with 20 % jitter.
func NewBackoff(min, max time.Duration) wait.Backoff {
	return wait.Backoff{Duration: min, Factor: 2, Jitter: 0.2, Steps: 32, Cap: max}
}

// Begin returns how long a new worker has to wait. To add a profile again counts
// as a change.
func (t *Throttle) Begin(now time.Time) (delay time.Duration) {
	if t.used {
		delay = t.UntilChange(now)
		t.FollowChange(now.Add(delay))
	}
	t.used = true
	return delay
}

// Reset makes the next failure wait for the shortest delay.
func (t *Throttle) Reset() { t.failures = NewBackoff(t.min, t.max) }

// Failed returns the delay after a failure.
func (t *Throttle) Failed() time.Duration { return t.failures.Step() }

// UntilChange returns how long a change has to wait before it is followed.
func (t *Throttle) UntilChange(now time.Time) time.Duration { return max(0, t.next.Sub(now)) }

// FollowChange notes that a change is followed now.
func (t *Throttle) FollowChange(now time.Time) {
	if t.IsIdle(now) {
		t.immediate, t.changes = immediateChanges, NewBackoff(t.min, t.max)
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
	unused []*throttleUse // in the order of their last use
}

type throttleUse struct {
	name     multicluster.ClusterName
	throttle *Throttle
	users    int
	lastUse  time.Time
}

// NewThrottles returns Throttles with delays between min and max.
func NewThrottles(min, max time.Duration) *Throttles {
	return &Throttles{min: min, max: max, byName: map[multicluster.ClusterName]*throttleUse{}}
}

// Acquire returns the Throttle of the name. It must be released.
func (t *Throttles) Acquire(name multicluster.ClusterName, now time.Time) *Throttle {
	t.mu.Lock()
	defer t.mu.Unlock()
	for len(t.unused) > 0 && now.Sub(t.unused[0].lastUse) > t.max {
		if old := t.unused[0]; old.users == 0 && now.Sub(old.lastUse) > t.max {
			delete(t.byName, old.name)
		}
		t.unused = t.unused[1:]
	}
	use := t.byName[name]
	if use == nil {
		use = &throttleUse{name: name, throttle: NewThrottle(t.min, t.max)}
		t.byName[name] = use
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
		t.unused = append(t.unused, use)
	}
}
