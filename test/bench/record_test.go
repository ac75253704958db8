// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"sync"
	"testing"
	"time"
)

// record keeps the time of the first reconcile of each object.
type record struct {
	mu      sync.Mutex // guards what follows
	seen    map[object]time.Time
	awaited int
	enough  chan struct{} // closed when awaited objects have been seen
}

func newRecord() *record {
	return &record{seen: map[object]time.Time{}, enough: make(chan struct{})}
}

func (r *record) reconcile(o object) {
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, ok := r.seen[o]; ok {
		return
	}
	r.seen[o] = now
	if len(r.seen) == r.awaited {
		close(r.enough)
	}
}

// reached returns a channel that is closed when n objects have been
// reconciled. It replaces the one before.
func (r *record) reached(n int) <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.awaited, r.enough = n, make(chan struct{})
	if len(r.seen) >= n {
		close(r.enough)
	}
	return r.enough
}

// await returns when n objects have been reconciled.
func (r *record) await(tb testing.TB, n int) {
	tb.Helper()
	timeout := time.NewTimer(waitLimit)
	defer timeout.Stop()
	select {
	case <-r.reached(n):
	case <-timeout.C:
		tb.Fatalf("%d of %d objects reconciled after %v", r.count(), n, waitLimit)
	}
}

// count is how many objects have been reconciled.
func (r *record) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.seen)
}

// at is when the object was reconciled.
func (r *record) at(o object) time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.seen[o]
}
