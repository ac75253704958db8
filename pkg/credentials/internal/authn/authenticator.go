// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Package authn obtains the credentials of requests and sends the requests.
//
// An [Authenticator] holds one credential and renews it. A [Pool] has one for
// all backends that get the same credential. A [Transport] sends requests to a
// [Backend], which can be replaced at any time.
package authn

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rollcall-dev/rollcall/pkg/credentials/internal/errdefs"
)

// ErrNotRun is returned by Source.Obtain if its context ended before the plugin
// was run.
var ErrNotRun = errors.New("the plugin was not run")

// Authenticator holds a credential and renews it. It has a goroutine only while
// the plugin runs: the requests find out that the credential is due.
type Authenticator struct {
	source *Source

	// spawn starts a goroutine. It returns false if none may be started.
	spawn func(f func()) bool

	// newCertificate is called when the connections made so far have another
	// client certificate than the new credential. They must end at the limit,
	// unless that is zero.
	newCertificate func(limit time.Time)

	// current is the last credential obtained, which may have expired. It is
	// written under the lock.
	current atomic.Pointer[Credential]

	mu       sync.Mutex // guards what follows; not held while the plugin runs
	running  *run       // nil if the plugin is not running
	failures backoff    // after failed runs
	lastErr  error      // of the last run, nil if it succeeded
	forced   allowance  // of runs because of 401s
	stopped  error      // why no more runs are started, or nil
}

// run is one run of the plugin.
type run struct {
	cancel  context.CancelFunc
	started time.Time
	done    chan struct{} // closed when the run is over

	// These do not change once done is closed.
	cred      *Credential
	err       error
	abandoned bool // canceled because no request waited
	switched  bool // abandoned because the last request went to another backend

	// The authenticator's lock guards these.
	waiters  int
	detached bool                  // goes on if no request waits
	forced   bool                  // started because of a 401
	refusals map[*backoff]struct{} // of the clusters that have refused the credential before
}

// certificateMargin is how long before the end of a client certificate its
// connections are closed.
const certificateMargin = 5 * time.Second

// minAbandoned is how long an abandoned run must have taken to count as failed.
const minAbandoned = time.Second

// credential returns one that has not expired. If it is due, the old one is
// returned and a run is started. If there is none, it waits for the plugin, until
// the context ends or the channel is closed.
func (a *Authenticator) credential(ctx context.Context, closing <-chan struct{}) (*Credential, error) {
	for {
		if c := a.current.Load(); c.isFresh(time.Now()) {
			return c, nil
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		r, c, err := a.join()
		if r == nil {
			return c, err
		}
		if err := a.wait(ctx, closing, r); err != nil {
			return nil, err
		}
		if !r.isVoid() {
			return r.cred, r.err
		}
	}
}

// Certificate returns the client certificate of the current credential, or an
// empty one, which means none.
func (a *Authenticator) Certificate() *tls.Certificate {
	if c := a.current.Load(); c.IsValid(time.Now()) && c.Certificate != nil {
		return c.Certificate
	}
	return &tls.Certificate{}
}

// join returns the run to wait for, a new one if necessary. Otherwise it
// returns a valid credential or an error.
func (a *Authenticator) join() (*run, *Credential, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now()
	c := a.current.Load()
	idle := a.running == nil
	switch {
	case a.stopped != nil:
		return nil, nil, a.stopped
	case c.IsValid(now):
		if idle && !c.isFresh(now) && a.failures.isOver(now) {
			a.start(now, &run{detached: true})
		}
		return nil, c, nil
	case idle && !a.failures.isOver(now):
		return nil, nil, a.lastErr
	case idle && !a.start(now, &run{}):
		return nil, nil, errdefs.ErrClosed
	}
	a.running.waiters++
	return a.running, nil, nil
}

// replace returns another credential than the one that a server refused, or nil
// if the plugin has none. Concurrent calls share a run. The backoff is that of the
// server: one that accepts no credential does not delay others.
func (a *Authenticator) replace(ctx context.Context, closing <-chan struct{}, refused *Credential, refusals *backoff) *Credential {
	for {
		r, c := a.force(refused, refusals, false)
		if r == nil {
			return c
		}
		if a.wait(ctx, closing, r) != nil {
			return nil
		}
		if r.isVoid() {
			continue
		}
		if r.err != nil || r.cred.equals(refused) {
			return nil
		}
		return r.cred
	}
}

// renew is replace without waiting.
func (a *Authenticator) renew(refused *Credential, refusals *backoff) {
	a.force(refused, refusals, true)
}

// force returns the run to wait for, a new one if necessary. Otherwise it
// returns the credential to use instead, or nil.
func (a *Authenticator) force(refused *Credential, refusals *backoff, detached bool) (*run, *Credential) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now()
	if c := a.current.Load(); c.IsValid(now) && !c.equals(refused) {
		return nil, c
	}
	if a.running == nil {
		if a.stopped != nil || !refusals.isOver(now) || !a.failures.isOver(now) || !a.forced.take(now, refusals.isNew(now)) {
			return nil, nil
		}
		if !a.start(now, &run{forced: true, refusals: map[*backoff]struct{}{}}) {
			return nil, nil
		}
	}
	if a.running.forced {
		a.running.refusals[refusals] = struct{}{}
	}
	if detached {
		a.running.detached = true
		return nil, nil
	}
	a.running.waiters++
	return a.running, nil
}

// start starts the run. It returns false if none may be started. The lock is
// held.
func (a *Authenticator) start(now time.Time, r *run) bool {
	ctx, cancel := context.WithCancel(context.Background())
	r.cancel, r.started, r.done = cancel, now, make(chan struct{})
	started := a.spawn(func() {
		defer cancel()
		if r.forced {
			a.source.Log.V(1).Info("Server refused the credential, running the plugin again")
		}
		c, err := a.source.Obtain(ctx)
		a.finish(r, c, err)
	})
	if !started {
		cancel()
		return false
	}
	a.running = r
	return true
}

// wait returns when the run is over, or with an error when the context ends or
// the channel is closed. The last one to stop waiting cancels the run.
func (a *Authenticator) wait(ctx context.Context, closing <-chan struct{}, r *run) error {
	var err error
	select {
	case <-r.done:
		return nil
	case <-ctx.Done():
		err = ctx.Err()
	case <-closing:
		err = errEnded
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	r.waiters--
	if r.waiters == 0 && !r.detached && a.running == r {
		r.abandoned, r.switched = true, errors.Is(err, errEnded)
		r.cancel()
	}
	return err
}

// isVoid reports whether the run has no result for requests that joined it after
// it was abandoned.
func (r *run) isVoid() bool { return r.abandoned && r.err != nil }

// finish sets the result of a run.
func (a *Authenticator) finish(r *run, c *Credential, err error) {
	a.mu.Lock()
	now := time.Now()
	old := a.current.Load()
	duration := now.Sub(r.started)
	failed := false
	switch {
	case a.stopped != nil:
		c, err = nil, a.stopped
	case err == nil:
		c.schedule(now, a.source.RefreshInterval)
		a.current.Store(c)
		a.failures, a.lastErr = backoff{}, nil
	case r.abandoned && (duration < minAbandoned || r.switched || errors.Is(err, ErrNotRun)):
		// The plugin had too little time, or was not even run.
	default:
		if r.abandoned {
			err = fmt.Errorf("%w: plugin stopped after %s, since all requests that waited for it had ended", errdefs.ErrTimeout, duration.Round(time.Millisecond))
		}
		a.failures.next(now)
		a.lastErr = err
		failed = true
	}
	for refusals := range r.refusals {
		refusals.next(now)
	}
	a.running = nil
	r.cred, r.err = c, err
	retryAfter := a.failures.until.Sub(now)
	a.mu.Unlock()

	switch {
	case failed:
		a.source.Log.Info("Credential plugin failed", "error", err.Error(),
			"retryAfter", retryAfter.Round(time.Millisecond).String(), "previousCredentialValid", old.IsValid(now))
	case err == nil && (!c.hasCertificateOf(old) || c.Certificate != nil && !old.IsValid(now)):
		// Connections made after the old one had expired have no certificate.
		var limit time.Time
		if old != nil && !old.Expiry.IsZero() {
			limit = old.Expiry.Add(-certificateMargin)
		}
		a.newCertificate(limit) // before the waiting requests make new connections
	}
	if r.forced {
		a.source.Log.V(1).Info("Ran the plugin for a refused credential", "outcome", outcomeOfForced(old, c, err))
	}
	close(r.done)
}

func outcomeOfForced(refused, c *Credential, err error) string {
	switch {
	case err != nil:
		return "no credential"
	case refused != nil && c.equals(refused):
		return "the same credential"
	}
	return "another credential"
}

// ExpiresIn returns how long the credential is still valid. It returns false if
// there is none, if it does not expire, and if it has expired although the last
// run did not fail: then it is not in use.
func (a *Authenticator) ExpiresIn(now time.Time) (left time.Duration, expires bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	c := a.current.Load()
	if c == nil || c.Expiry.IsZero() || (!c.IsValid(now) && a.lastErr == nil) {
		return 0, false
	}
	return c.Expiry.Sub(now), true
}

// stop cancels the run under way and starts no others. Waiting requests get
// the error.
func (a *Authenticator) stop(err error) {
	a.mu.Lock()
	if a.stopped != nil {
		a.mu.Unlock()
		return
	}
	a.stopped = err
	a.current.Store(nil)
	if a.running != nil {
		a.running.cancel()
	}
	a.mu.Unlock()
	a.source.Stopped(a)
}
