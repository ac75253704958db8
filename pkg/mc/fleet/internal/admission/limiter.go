// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"container/list"
	"context"
	"errors"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/rollcall-dev/rollcall/pkg/mc/fleet/internal/timing"
)

// Limiter bounds how many clusters connect or list their objects at once.
type Limiter struct {
	size  int
	clock clock.WithDelayedExecution

	mu          sync.Mutex // guards what follows, and the state of all slots
	held        int
	responses   int                   // from all clusters so far
	unconfirmed list.List             // of held slots, oldest first
	waiting     [priorities]list.List // of slots, oldest first
}

// Priority says which of the waiting clusters gets the next slot.
type Priority int

// The priorities, highest first.
const (
	Engaged   Priority = iota // the cluster is in use, and its access has changed
	Responded                 // it responds after it has lost its slot
	New                       // it may respond or not
	Failed                    // it could not be reached the last time
	priorities
)

const (
	// respondWithin is how long a cluster may hold a slot before it responds.
	respondWithin = time.Second
	// overtakenBy is how many clusters may respond in that time, for each slot of
	// the limiter.
	overtakenBy = 2
)

// ErrReleased is the error of a wait for what has been released.
var ErrReleased = errors.New("startup slot has been released")

// NewLimiter returns a limiter with that number of slots, which must not be 0. A
// negative number means no bound.
func NewLimiter(size int, clock clock.WithDelayedExecution) *Limiter {
	return &Limiter{size: size, clock: clock}
}

// Acquire waits for a slot, which must be released. The cluster loses it to
// others unless it is confirmed in time. The function queued, which may be nil,
// is called when the cluster has to wait for a slot, now or in Confirm. The error
// is the cause of the context's end.
func (l *Limiter) Acquire(ctx context.Context, priority Priority, queued func()) (*Slot, error) {
	s := &Slot{limiter: l, queued: queued, granted: make(chan error, 1)}
	if err := s.acquire(ctx, priority); err != nil {
		return nil, err
	}
	return s, nil
}

// Slot permits one cluster to connect and to list its objects. Release may be
// called at any time, Confirm by one goroutine at a time.
type Slot struct {
	limiter *Limiter
	queued  func()
	granted chan error // ends a wait

	// The limiter's lock guards what follows.
	held      bool
	confirmed bool // the cluster has responded
	released  bool
	expiry    clock.Timer // frees the slot if it is not confirmed
	responses int         // the limiter's when the slot was granted
	queue     *list.List  // the limiter's list that the slot was added to last
	element   *list.Element
}

// Confirm is called when the cluster has responded. It keeps the slot, or waits
// for another one, with priority Responded, if the cluster has lost it. After an
// error, the cause of the context's end or ErrReleased, the slot is released.
func (s *Slot) Confirm(ctx context.Context) error {
	l := s.limiter
	l.mu.Lock()
	if !s.confirmed {
		s.confirmed = true
		s.expiry.Stop()
		s.queue.Remove(s.element)
		l.responses++
		for first := l.unconfirmed.Front(); first != nil; first = l.unconfirmed.Front() {
			other := first.Value.(*Slot)
			if l.responses-other.responses <= overtakenBy*l.size {
				break
			}
			other.freeLocked()
		}
	}
	held := s.held
	l.mu.Unlock()
	if held {
		return nil
	}
	return s.acquire(ctx, Responded)
}

// Release frees the slot for another cluster. It may be called more than once.
func (s *Slot) Release() {
	s.limiter.mu.Lock()
	defer s.limiter.mu.Unlock()
	s.released = true
	s.freeLocked()
	select {
	case s.granted <- ErrReleased: // Confirm may wait
	default:
	}
}

// acquire waits until the slot is held.
func (s *Slot) acquire(ctx context.Context, priority Priority) error {
	l := s.limiter
	l.mu.Lock()
	if s.released {
		l.mu.Unlock()
		return ErrReleased
	}
	if l.size < 0 || l.held < l.size {
		s.holdLocked()
		l.mu.Unlock()
		return nil
	}
	s.queue = &l.waiting[priority]
	s.element = s.queue.PushBack(s)
	l.mu.Unlock()
	if s.queued != nil {
		s.queued()
	}
	select {
	case err := <-s.granted:
		return err
	case <-ctx.Done():
		s.Release()
		return context.Cause(ctx)
	}
}

func (s *Slot) holdLocked() {
	l := s.limiter
	l.held++
	s.held = true
	if s.confirmed {
		return
	}
	s.responses = l.responses
	s.queue = &l.unconfirmed
	s.element = s.queue.PushBack(s)
	s.expiry = timing.AfterFunc(l.clock, respondWithin, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if !s.confirmed {
			s.freeLocked()
		}
	})
}

// freeLocked ends the wait for the slot, or grants it to the next cluster.
func (s *Slot) freeLocked() {
	s.queue.Remove(s.element)
	if !s.held {
		return
	}
	l := s.limiter
	s.held = false
	s.expiry.Stop()
	l.held--
	for p := range l.waiting {
		if first := l.waiting[p].Front(); first != nil {
			next := first.Value.(*Slot)
			l.waiting[p].Remove(first)
			next.holdLocked()
			next.granted <- nil
			return
		}
	}
}
