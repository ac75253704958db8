// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"errors"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/rollcall-dev/rollcall/pkg/mc/fleet/internal/timing"
)

// ErrClosed is the error of shares without a slot after Close.
var ErrClosed = errors.New("cluster has been disengaged")

// Starts shares the startup slot of one engaged cluster between the sources that
// start in it. Its methods may be called concurrently.
type Starts struct {
	ctx     context.Context // ends with the engagement
	limiter *Limiter
	timeout time.Duration
	probe   func(ctx context.Context) error

	mu        sync.Mutex // guards what follows, and the state of all startups
	current   *startup   // nil if the cluster neither holds a slot nor waits for one
	closed    error      // why no slot is acquired any more, nil before that
	acquiring sync.WaitGroup
}

// startup is the time in which the cluster waits for one slot and holds it.
type startup struct {
	ready  chan struct{}           // closed when the slot is held, or err is set
	err    error                   // why there is no slot
	cancel context.CancelCauseFunc // ends the wait for the slot

	// The lock of Starts guards what follows.
	shares  int
	slot    *Slot       // nil until it is held
	timeout clock.Timer // runs while it is held
}

// NewStarts returns the Starts of a cluster that has been connected under the
// confirmed slot, and a share for the goroutine that engages it, which releases
// the share when all sources have requested theirs. Starts must be closed.
//
// The context is the engagement's: the slot is freed when it ends, and when the
// cluster has held the slot for the timeout. The probe returns when the cluster
// has responded; it applies a time limit.
func NewStarts(ctx context.Context, limiter *Limiter, slot *Slot, timeout time.Duration, probe func(ctx context.Context) error) (*Starts, *Share) {
	s := &Starts{ctx: ctx, limiter: limiter, timeout: timeout, probe: probe}
	s.mu.Lock()
	s.current = &startup{ready: make(chan struct{}), cancel: func(error) {}}
	s.holdLocked(s.current, slot)
	s.mu.Unlock()
	share := s.RequestStart()
	context.AfterFunc(ctx, func() { s.close(context.Cause(ctx)) })
	return s, share
}

// RequestStart returns at once with a share of the slot that the cluster holds
// or waits for. If there is none, one goroutine acquires a slot for all who
// request it in this time.
func (s *Starts) RequestStart() *Share {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.current
	if st == nil {
		ctx, cancel := context.WithCancelCause(s.ctx)
		st = &startup{ready: make(chan struct{}), cancel: cancel}
		s.current = st
		if s.closed == nil {
			s.acquiring.Go(func() { s.acquire(ctx, st) })
		} else {
			s.endLocked(st, s.closed)
		}
	}
	st.shares++
	return &Share{starts: s, startup: st, released: make(chan struct{})}
}

// HasSlot reports whether the cluster holds a slot.
func (s *Starts) HasSlot() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.current != nil && s.current.slot != nil
}

// Close frees the slot at once, and waits for the probe to honour its context.
func (s *Starts) Close() {
	s.close(ErrClosed)
	s.acquiring.Wait()
}

func (s *Starts) close(reason error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed == nil {
		s.closed = reason
	}
	s.endLocked(s.current, s.closed)
}

// acquire acquires the slot of the startup, and keeps it if the cluster responds.
func (s *Starts) acquire(ctx context.Context, st *startup) {
	slot, err := s.limiter.Acquire(ctx, New, nil)
	if err == nil {
		if err = s.probe(ctx); err == nil {
			err = slot.Confirm(ctx)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if cause := context.Cause(ctx); cause != nil {
		err = cause // the startup may have ended
	}
	if err == nil {
		s.holdLocked(st, slot)
		return
	}
	if slot != nil {
		slot.Release()
	}
	s.endLocked(st, err)
}

func (s *Starts) holdLocked(st *startup, slot *Slot) {
	st.slot = slot
	st.timeout = timing.AfterFunc(s.limiter.clock, s.timeout, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.endLocked(st, nil)
	})
	close(st.ready)
}

// endLocked ends the startup unless it has ended, also if shares are left.
func (s *Starts) endLocked(st *startup, reason error) {
	if st == nil || s.current != st {
		return
	}
	s.current = nil
	st.cancel(reason)
	if st.slot == nil {
		st.err = reason
		close(st.ready)
		return
	}
	st.timeout.Stop()
	st.slot.Release()
}

// Share keeps the startup slot of a cluster for one source. The slot is free when
// all its shares are released.
type Share struct {
	starts   *Starts
	startup  *startup
	once     sync.Once
	released chan struct{} // closed by Release
}

// Wait returns when the cluster holds the slot: at once if it holds, or has held,
// it already. An error is the cause of the end of this context or of the
// engagement's, the probe's, ErrReleased or ErrClosed. The share must be released
// after an error, too.
func (s *Share) Wait(ctx context.Context) error {
	select {
	case <-s.released:
		return ErrReleased
	default:
	}
	select {
	case <-s.startup.ready:
		return s.startup.err
	case <-s.released:
		return ErrReleased
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Release gives the share up, also while the slot is waited for. It may be
// called more than once.
func (s *Share) Release() {
	s.once.Do(func() {
		close(s.released)
		s.starts.mu.Lock()
		defer s.starts.mu.Unlock()
		s.startup.shares--
		if s.startup.shares == 0 {
			s.starts.endLocked(s.startup, ErrReleased)
		}
	})
}
