// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package clients

import (
	"context"
	"errors"
	"time"
)

const (
	attemptTimeout = 30 * time.Second
	minBackoff     = time.Second
	maxBackoff     = 30 * time.Second
)

var (
	errTimeout    = errors.New("timed out connecting to the cluster after " + attemptTimeout.String())
	errSuperseded = errors.New("superseded by another attempt")
)

// task is work that one goroutine does for all callers that need it, with a backoff
// after failures. Clients.mu guards it.
type task struct {
	current *attempt // nil if none is under way
	err     error    // of the last attempt
	backoff backoff
}

// join returns the attempt under way, which it starts if there is none, or the last
// error during the backoff.
func (t *task) join(start func()) (*attempt, error) {
	if t.current == nil {
		if t.backoff.active() {
			return nil, t.err
		}
		start()
	}
	return t.current, nil
}

// begin begins an attempt, which supersedes the one under way.
func (t *task) begin(ctx context.Context) *attempt {
	t.supersede()
	a := &attempt{done: make(chan struct{})}
	ctx, a.cancel = context.WithCancelCause(ctx)
	a.ctx, a.stopTimer = context.WithTimeoutCause(ctx, attemptTimeout, errTimeout)
	t.current = a
	return a
}

// supersede lets callers that wait for the attempt under way try again.
func (t *task) supersede() {
	if t.current != nil {
		t.current.cancel(errSuperseded)
		t.current = nil
	}
}

// finish notes the outcome of the current attempt.
func (t *task) finish(err error) {
	t.current, t.err = nil, err
	if err == nil {
		t.backoff = backoff{}
	} else {
		t.backoff.extend()
	}
}

// attempt is one attempt of a task.
type attempt struct {
	ctx       context.Context // ends when the attempt times out or is superseded, or with the Clients
	cancel    context.CancelCauseFunc
	stopTimer context.CancelFunc
	done      chan struct{}
	err       error // may be read when done is closed
}

// end ends the attempt.
func (a *attempt) end(err error) {
	a.err = err
	close(a.done)
	a.stopTimer()
	a.cancel(nil)
}

// wait returns the error of the attempt when it ends, or that of the context. It does
// not wait for functions that ignore the attempt's context.
func (a *attempt) wait(ctx context.Context) error {
	select {
	case <-a.done:
		return a.err
	case <-ctx.Done():
		return ctx.Err()
	case <-a.ctx.Done():
	}
	select {
	case <-a.done:
		return a.err
	default:
		return a.cause()
	}
}

// cause returns why the attempt's context has ended.
func (a *attempt) cause() error {
	cause := context.Cause(a.ctx)
	if cause == errTimeout || cause == errSuperseded { //nolint:errorlint // These are never wrapped.
		return cause
	}
	return ErrStopped
}

// backoff is a delay that doubles, until it was not used for a time.
type backoff struct {
	delay time.Duration
	until time.Time
}

func (b *backoff) active() bool { return time.Now().Before(b.until) }

func (b *backoff) extend() {
	if time.Since(b.until) > maxBackoff {
		b.delay = 0
	}
	b.delay = min(max(2*b.delay, minBackoff), maxBackoff)
	b.until = time.Now().Add(b.delay)
}
