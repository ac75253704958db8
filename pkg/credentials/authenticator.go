// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
)

// authenticator holds the credential of one invocation and has it renewed. It
// has no goroutine but while the plugin runs: what is due is found out by the
// requests.
type authenticator struct {
	// obtain runs the plugin.
	obtain func(ctx context.Context) (*credential, error)

	// spawn starts a goroutine, or returns false where none may be started.
	spawn func(f func()) bool

	// newCertificate is called when connections made so far have to go.
	newCertificate func()

	log logr.Logger

	// current is the last credential obtained, which may have expired. It is
	// written under the lock.
	current atomic.Pointer[credential]

	mu       sync.Mutex // guards what follows; not held while the plugin runs
	flight   *flight    // the run under way, or nil
	failures backoff    // after failed runs
	lastErr  error      // of the last run, where it failed
	forced   backoff    // between runs for the sake of a 401
	stopped  error      // not nil once no more runs are started
}

// flight is one run of the plugin, and those who wait for it.
type flight struct {
	cancel  context.CancelFunc
	started time.Time
	done    chan struct{} // closed when the run is over

	// Not changed any more once done is closed:
	cred      *credential
	err       error
	abandoned bool // was cancelled because nobody waited any more

	// Guarded by the authenticator's lock:
	waiters  int
	detached bool // goes on although nobody waits
	forced   bool // was started because of a 401
}

// minAbandoned is how long a run must have lasted for counting as failed when
// all who waited for it have left.
const minAbandoned = time.Second

// credential returns one that has not expired. It waits for the plugin only
// where there is none. Where the credential is due it sets off a run, and
// returns the old one.
func (a *authenticator) credential(ctx context.Context) (*credential, error) {
	for {
		if c := a.current.Load(); c.isFresh(time.Now()) {
			return c, nil
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		f, c, err := a.join()
		if f == nil {
			return c, err
		}
		if err := a.wait(ctx, f); err != nil {
			return nil, err
		}
		if f.wasWasted() {
			continue
		}
		return f.cred, f.err
	}
}

// certificate returns the client certificate of the credential that is there,
// and an empty one, which means none, where there is none.
func (a *authenticator) certificate() *tls.Certificate {
	if c := a.current.Load(); c.isValid(time.Now()) && c.cert != nil {
		return c.cert
	}
	return &tls.Certificate{}
}

// join returns the run to wait for, started where need be; or else no run and
// the credential that serves, or why there is none.
func (a *authenticator) join() (*flight, *credential, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now()
	c := a.current.Load()
	idle := a.flight == nil
	switch {
	case a.stopped != nil:
		return nil, nil, a.stopped
	case c.isValid(now):
		if idle && !c.isFresh(now) && a.failures.isOver(now) {
			a.start(now, &flight{detached: true})
		}
		return nil, c, nil
	case idle && !a.failures.isOver(now):
		return nil, nil, a.lastErr
	case idle && !a.start(now, &flight{}):
		return nil, nil, ErrClosed
	}
	a.flight.waiters++
	return a.flight, nil, nil
}

// replace is told that a server refused the credential. It returns another one
// where the plugin has one, and nil otherwise. Calls at the same time share a
// run; runs that are forced in this way come at growing intervals.
func (a *authenticator) replace(ctx context.Context, refused *credential) *credential {
	for {
		f, c := a.force(refused, false)
		if f == nil {
			return c
		}
		if a.wait(ctx, f) != nil {
			return nil
		}
		if f.wasWasted() {
			continue
		}
		if f.err != nil || f.cred.sameAs(refused) {
			return nil
		}
		return f.cred
	}
}

// renew is replace for one who does not wait for the outcome.
func (a *authenticator) renew(refused *credential) { a.force(refused, true) }

// force returns the run to wait for, started where need be; or else no run and
// the credential to use instead, if there is one.
func (a *authenticator) force(refused *credential, detached bool) (*flight, *credential) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now()
	if c := a.current.Load(); c.isValid(now) && !c.sameAs(refused) {
		return nil, c
	}
	if a.flight == nil {
		if a.stopped != nil || !a.forced.isOver(now) || !a.failures.isOver(now) {
			return nil, nil
		}
		if !a.start(now, &flight{forced: true}) {
			return nil, nil
		}
	}
	if detached {
		a.flight.detached = true
		return nil, nil
	}
	a.flight.waiters++
	return a.flight, nil
}

// start makes f the run under way. It returns false where no run may be
// started. The lock is held.
func (a *authenticator) start(now time.Time, f *flight) bool {
	ctx, cancel := context.WithCancel(context.Background())
	f.cancel, f.started, f.done = cancel, now, make(chan struct{})
	started := a.spawn(func() {
		defer cancel()
		if f.forced {
			a.log.V(1).Info("Server refused the credential, running the plugin for another one")
		}
		c, err := a.obtain(ctx)
		a.finish(f, c, err)
	})
	if !started {
		cancel()
		return false
	}
	a.flight = f
	return true
}

// wait returns when the run is over, or with an error when the context is. The
// last one to leave cancels the run.
func (a *authenticator) wait(ctx context.Context, f *flight) error {
	select {
	case <-f.done:
		return nil
	case <-ctx.Done():
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	f.waiters--
	if f.waiters == 0 && !f.detached && a.flight == f {
		f.abandoned = true
		f.cancel()
	}
	return ctx.Err()
}

// wasWasted tells whether the run says nothing to those who came when it had
// been abandoned already.
func (f *flight) wasWasted() bool { return f.abandoned && f.err != nil }

// finish takes in what a run gave.
func (a *authenticator) finish(f *flight, c *credential, err error) {
	a.mu.Lock()
	now := time.Now()
	old := a.current.Load()
	lasted := now.Sub(f.started)
	failed := false
	switch {
	case a.stopped != nil:
		c, err = nil, a.stopped
	case err == nil:
		a.current.Store(c)
		a.failures, a.lastErr = backoff{}, nil
	case f.abandoned && (lasted < minAbandoned || errors.Is(err, errNoTurn)):
		// Nobody waited long enough to say that the plugin is at fault, or others
		// took so long that it was not even run.
	default:
		if f.abandoned {
			err = fmt.Errorf("%w: no request waited for longer than %s", ErrTimeout, lasted.Round(time.Millisecond))
		}
		a.failures.next(now)
		a.lastErr = err
		failed = true
	}
	if f.forced {
		a.forced.next(now)
	}
	a.flight = nil
	f.cred, f.err = c, err
	retryAfter := a.failures.until.Sub(now)
	a.mu.Unlock()

	switch {
	case failed:
		a.log.Info("Credential plugin gave no credential", "error", err.Error(), "retryAfter", retryAfter.Round(time.Millisecond).String(), "oldStillValid", old.isValid(now))
	case err == nil && (!c.sameCertificate(old) || c.cert != nil && !old.isValid(now)):
		// Connections of the time when the old one had expired are without any.
		a.newCertificate() // before those who wait go on, on a new connection
	}
	if f.forced {
		a.log.V(1).Info("Plugin was run for a refused credential", "outcome", outcomeOfForced(old, c, err))
	}
	close(f.done)
}

func outcomeOfForced(refused, c *credential, err error) string {
	switch {
	case err != nil:
		return "no credential"
	case refused != nil && c.sameAs(refused):
		return "the same credential"
	}
	return "another credential"
}

// expiresIn returns how long the credential is still valid. It returns false
// where there is none, where it does not expire, and where it has expired
// without a run having failed: then it is not in use.
func (a *authenticator) expiresIn(now time.Time) (left time.Duration, expires bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	c := a.current.Load()
	if c == nil || c.expiry.IsZero() || (!c.isValid(now) && a.lastErr == nil) {
		return 0, false
	}
	return c.expiry.Sub(now), true
}

// stop ends the run under way and lets no other start. Those who wait, and
// those who come, get the error.
func (a *authenticator) stop(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.stopped != nil {
		return
	}
	a.stopped = err
	a.current.Store(nil)
	if a.flight != nil {
		a.flight.cancel()
	}
}
