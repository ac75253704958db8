// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package authn

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/go-logr/logr"

	"github.com/rollcall-dev/rollcall/pkg/credentials/internal/errdefs"
)

// Pool holds one Authenticator for all backends that get the same credential,
// for as long as there are such backends.
type Pool struct {
	// goroutines are those started by Go.
	goroutines sync.WaitGroup

	mu      sync.Mutex // guards what follows
	entries map[string]*entry
	closed  bool
}

// entry is an Authenticator and its users.
type entry struct {
	auth  *Authenticator
	users map[Backend]*Transport
}

// Source is where an Authenticator gets its credentials.
type Source struct {
	// Obtain returns a new credential. It returns when the context ends, with
	// ErrNotRun if it had only waited until then.
	Obtain func(ctx context.Context) (*Credential, error)

	// RefreshInterval is the lifetime of credentials that do not expire.
	RefreshInterval time.Duration

	// Started is called with the new Authenticator, and Stopped when that is no
	// longer used.
	Started, Stopped func(*Authenticator)

	// Log gets failures of Obtain.
	Log logr.Logger
}

// NewPool returns an empty Pool.
func NewPool() *Pool {
	return &Pool{entries: map[string]*entry{}}
}

// Acquire returns the Authenticator with the key, a new one of the source if
// there is none, or ErrClosed. A new client certificate renews the connections
// of the Transport to the backend, until Release.
func (p *Pool) Acquire(key string, backend Backend, t *Transport, source func() *Source) (*Authenticator, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, errdefs.ErrClosed
	}
	e := p.entries[key]
	if e == nil {
		e = &entry{users: map[Backend]*Transport{}}
		e.auth = &Authenticator{source: source(), spawn: p.Go, newCertificate: func(limit time.Time) { p.renew(key, limit) }}
		e.auth.source.Started(e.auth)
		p.entries[key] = e
	}
	e.users[backend] = t
	return e.auth, nil
}

// Release ends the use of the Authenticator by the backend. The last user stops
// it, also while the plugin runs.
func (p *Pool) Release(key string, backend Backend) {
	p.mu.Lock()
	e := p.entries[key]
	last := false
	if e != nil && e.users[backend] != nil {
		delete(e.users, backend)
		if last = len(e.users) == 0; last {
			delete(p.entries, key)
		}
	}
	p.mu.Unlock()
	if last {
		e.auth.stop(errdefs.ErrReleased)
	}
}

// renew replaces the connections of all backends that use the Authenticator. The
// old ones end at the limit.
func (p *Pool) renew(key string, limit time.Time) {
	var users map[Backend]*Transport
	p.mu.Lock()
	if e := p.entries[key]; e != nil {
		users = maps.Clone(e.users)
	}
	p.mu.Unlock()
	for backend, t := range users {
		t.renew(backend, limit)
	}
}

// Go runs f in a goroutine that Close waits for. It returns false, and runs
// nothing, once the Pool is closed.
func (p *Pool) Go(f func()) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	p.goroutines.Go(f)
	return true
}

// Close ends all users with ErrClosed and waits for all goroutines.
func (p *Pool) Close() {
	p.mu.Lock()
	p.closed = true
	entries := p.entries
	p.entries = nil
	p.mu.Unlock()

	for _, e := range entries {
		e.auth.stop(errdefs.ErrClosed)
		for backend, t := range e.users {
			t.end(backend, errdefs.ErrClosed)
		}
	}
	p.goroutines.Wait()
}
