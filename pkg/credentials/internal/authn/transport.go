// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package authn

import (
	"context"
	"crypto/tls"
	"errors"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rollcall-dev/rollcall/pkg/credentials/internal/errdefs"
)

// Backend is an API server and a way of authenticating there. Its methods may
// be called concurrently.
type Backend interface {
	// Server returns the URL of the API server, which has a host, or why there
	// is none.
	Server() (*url.URL, error)

	// Connect returns new connections to the server. It opens none yet.
	Connect() (*Connections, error)

	// Acquire is called once, by the Transport that sends requests to the
	// backend. It returns what obtains the credential for them, or nil if the
	// transport of its connections does that.
	Acquire(t *Transport) (*Authenticator, error)

	// Release undoes Acquire, which may not have been called.
	Release()

	// Wrap returns a transport that a client brings with the credential added,
	// unless the backend has an Authenticator.
	Wrap(base http.RoundTripper) (http.RoundTripper, error)

	// TLS returns a digest of the settings which a client that brings its own
	// transport makes its connections with: those for TLS, and the proxy.
	TLS() string

	// ConfigureTLS sets the certificate authorities, the server name and the client
	// certificate, also one from the Authenticator, for a client that brings its
	// own transport.
	ConfigureTLS(config *tls.Config) error

	// Proxy returns the URL of the proxy in the configuration, or "".
	Proxy() string

	// WrapError adds to the error of a request that was not sent whose it is.
	WrapError(err error) error
}

// Transport sends the requests of all clients of an access to its backend,
// which can be replaced at any time, as can the connections.
type Transport struct {
	current atomic.Pointer[target]
	mu      sync.Mutex // guards writes of current
	number  uint64     // of its creation: where two are locked, the lower one is first
}

// created is the number of Transports so far.
var created atomic.Uint64

// target is where requests go and over which connections. It does not change:
// a switch and a new client certificate make another one.
type target struct {
	backend Backend
	conns   *Connections   // nil before Open and when owner or ended is set
	auth    *Authenticator // nil if the connections' transport authenticates
	servers servers
	// refusals is the backoff between runs because the server refuses the
	// credential. The authenticator's lock guards it.
	refusals *backoff
	owner    *Transport // the Transport that has taken over the backend, or nil
	ended    error      // why there are no more requests, or nil
}

// NewTransport returns a Transport to the backend.
func NewTransport(backend Backend) *Transport {
	t := &Transport{number: created.Add(1)}
	t.current.Store(&target{backend: backend})
	return t
}

// live returns the Transport that has this one's backend, and its target, which
// has no owner.
func (t *Transport) live() (*Transport, *target) {
	for {
		to := t.current.Load()
		if to.owner == nil {
			return t, to
		}
		next := to.owner
		if after := next.current.Load().owner; after != nil {
			// Each call makes the way of the next one shorter by half. Without the
			// lock, since only this writes a target with an owner.
			t.current.CompareAndSwap(to, &target{backend: to.backend, owner: after})
			next = after
		}
		t = next
	}
}

// target returns where requests go.
func (t *Transport) target() *target {
	_, to := t.live()
	return to
}

// Backend returns the current one, also after the end.
func (t *Transport) Backend() Backend { return t.target().backend }

// Open prepares for requests.
func (t *Transport) Open() error {
	t, to := t.live()
	if to.conns != nil {
		return nil
	}
	if to.ended != nil {
		return to.backend.WrapError(to.ended)
	}
	u, err := to.backend.Server()
	if err != nil {
		return to.backend.WrapError(err)
	}
	conns, err := to.backend.Connect()
	if err != nil {
		return to.backend.WrapError(err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.current.Load() != to {
		return nil // others were faster, or the next call returns the error
	}
	opened := &target{backend: to.backend, refusals: &backoff{}}
	if opened.auth, opened.ended = to.backend.Acquire(t); opened.ended == nil {
		opened.conns, opened.servers = conns, newServers(u)
	}
	t.current.Store(opened)
	if opened.ended != nil {
		return to.backend.WrapError(opened.ended)
	}
	return nil
}

// renew replaces the connections to the backend, if it is the current one. The
// requests under way on the old ones may go on until the limit, unless that is zero.
func (t *Transport) renew(backend Backend, limit time.Time) {
	conns, err := backend.Connect()
	if err != nil {
		return // the connections before are better than none
	}
	to := t.replace(backend, func(to *target) *target {
		renewed := *to
		renewed.conns = conns
		conns.succeed(to.conns)
		return &renewed
	})
	if to != nil {
		to.conns.drain(limit)
	}
}

// end closes the connections to the backend, if it is the current one, and
// fails all requests to come with the error.
func (t *Transport) end(backend Backend, err error) {
	if to := t.replace(backend, func(to *target) *target { return &target{backend: to.backend, ended: err} }); to != nil {
		to.end()
	}
}

// Release fails all requests to come with ErrReleased, closes the connections
// and releases the backend. It has no effect after a Switch to this Transport:
// the other one has the backend.
func (t *Transport) Release() {
	t.mu.Lock()
	to := t.current.Load()
	if to.ended != nil || to.owner != nil {
		t.mu.Unlock()
		return
	}
	t.current.Store(&target{backend: to.backend, ended: errdefs.ErrReleased})
	t.mu.Unlock()
	to.end()
	to.backend.Release()
}

// replace replaces the target, if it has the backend and has not ended. It returns
// the old one, or nil.
func (t *Transport) replace(backend Backend, next func(*target) *target) *target {
	t.mu.Lock()
	to := t.current.Load()
	for to.owner != nil {
		t.mu.Unlock()
		t, _ = t.live()
		t.mu.Lock()
		to = t.current.Load()
	}
	defer t.mu.Unlock()
	if to.ended != nil || to.backend != backend {
		return nil
	}
	t.current.Store(next(to))
	return to
}

// known returns the servers that clients may have, none if that of the backend
// is invalid.
func (to *target) known() servers {
	if to.conns != nil {
		return to.servers
	}
	u, err := to.backend.Server()
	if err != nil {
		return servers{}
	}
	return newServers(u)
}

// end ends the connections.
func (to *target) end() {
	if to.conns != nil {
		to.conns.end()
	}
}

// Switch makes the backend of next the one that the requests of both go to, and
// releases the old one. After an error nothing has changed.
func (t *Transport) Switch(next *Transport) error {
	if err := next.Open(); err != nil {
		return err
	}
	old, err := t.swap(next)
	if err != nil {
		return err
	}
	old.end()
	old.backend.Release()
	return nil
}

func (t *Transport) swap(next *Transport) (old *target, err error) {
	if t == next {
		return nil, errors.New("cannot switch an access to itself")
	}
	first, second := t, next
	if second.number < first.number {
		first, second = second, first
	}
	first.mu.Lock()
	defer first.mu.Unlock()
	second.mu.Lock()
	defer second.mu.Unlock()
	old, to := t.current.Load(), next.current.Load()
	for _, side := range []*target{old, to} {
		switch {
		case side.ended != nil:
			return nil, side.backend.WrapError(side.ended)
		case side.owner != nil:
			return nil, side.backend.WrapError(errors.New("another access has taken over this one"))
		}
	}
	switched := *to
	switched.servers = to.servers.after(old.known())
	t.current.Store(&switched)
	next.current.Store(&target{backend: to.backend, owner: t})
	return old, nil
}

// Credential returns the credential of the backend, which it obtains if necessary,
// or nil if the transport of the connections authenticates. It sends no request.
func (t *Transport) Credential(ctx context.Context) (*Credential, error) {
	for {
		if err := t.Open(); err != nil {
			return nil, err
		}
		to := t.target()
		if to.conns == nil {
			continue // released or switched since
		}
		if to.auth == nil {
			return nil, nil
		}
		c, err := to.auth.credential(ctx, to.conns.closing.Done())
		if t.target() != to {
			continue
		}
		if err != nil {
			return nil, to.backend.WrapError(err)
		}
		return c, nil
	}
}

// Expiry returns when the credential in use expires, if that is known.
func (t *Transport) Expiry() (time.Time, bool) {
	auth := t.target().auth
	if auth == nil {
		return time.Time{}, false
	}
	c := auth.current.Load()
	if c == nil || c.Expiry.IsZero() {
		return time.Time{}, false
	}
	return c.Expiry, true
}

// DescribeToken describes the token in use, see Credential.Describe.
func (t *Transport) DescribeToken() string {
	auth := t.target().auth
	if auth == nil {
		return ""
	}
	return auth.current.Load().Describe()
}

// CloseIdleConnections closes the connections that no request uses. Those of
// transports that clients have brought are not included.
func (t *Transport) CloseIdleConnections() {
	if conns := t.target().conns; conns != nil {
		conns.closeIdle()
	}
}
