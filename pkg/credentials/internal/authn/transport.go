// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package authn

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"

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
	// transport makes its connections with.
	TLS() string

	// WrapError adds to the error of a request that was not sent whose it is.
	WrapError(err error) error
}

// Transport sends the requests of all clients of an access to its backend,
// which can be replaced at any time, as can the connections.
type Transport struct {
	current atomic.Pointer[target]
	mu      sync.Mutex // guards writes of current
}

// target is where requests go and over which connections. It does not change:
// a switch and a new client certificate make another one.
type target struct {
	backend Backend
	conns   *Connections   // nil before Open and when owner or ended is set
	auth    *Authenticator // nil if the connections' transport authenticates
	servers servers
	owner   *Transport // the Transport that has taken over the backend, or nil
	ended   error      // why there are no more requests, or nil
}

// NewTransport returns a Transport to the backend.
func NewTransport(backend Backend) *Transport {
	t := &Transport{}
	t.current.Store(&target{backend: backend})
	return t
}

// live returns the Transport that has this one's backend.
func (t *Transport) live() *Transport {
	for {
		owner := t.current.Load().owner
		if owner == nil {
			return t
		}
		t = owner
	}
}

// target returns where requests go.
func (t *Transport) target() *target { return t.live().current.Load() }

// Backend returns the current one, also after the end.
func (t *Transport) Backend() Backend { return t.target().backend }

// Open prepares for requests.
func (t *Transport) Open() error {
	t = t.live()
	to := t.current.Load()
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
	opened := &target{backend: to.backend}
	if opened.auth, opened.ended = to.backend.Acquire(t); opened.ended == nil {
		opened.conns, opened.servers = conns, newServers(u)
	}
	t.current.Store(opened)
	if opened.ended != nil {
		return to.backend.WrapError(opened.ended)
	}
	return nil
}

// renew replaces the connections to the backend, if it is the current one.
func (t *Transport) renew(backend Backend) {
	conns, err := backend.Connect()
	if err != nil {
		return // the connections before are better than none
	}
	t.replace(backend, func(to *target) *target {
		renewed := *to
		renewed.conns = conns
		return &renewed
	})
}

// end closes the connections to the backend, if it is the current one, and
// fails all requests to come with the error.
func (t *Transport) end(backend Backend, err error) {
	t.replace(backend, func(to *target) *target { return &target{backend: to.backend, ended: err} })
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

// replace replaces the target, if it has the backend and has not ended, and
// ends the connections of the old one.
func (t *Transport) replace(backend Backend, next func(*target) *target) {
	t.mu.Lock()
	to := t.current.Load()
	if to.owner != nil {
		t.mu.Unlock()
		to.owner.replace(backend, next)
		return
	}
	if to.ended != nil || to.backend != backend {
		t.mu.Unlock()
		return
	}
	t.current.Store(next(to))
	t.mu.Unlock()
	to.end()
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

// switching is held by each Switch, so that the locks of two Transports are
// never taken in two orders.
var switching sync.Mutex

// Switch makes the backend of next the one that the requests of both go to, and
// releases the old one. After an error nothing has changed.
func (t *Transport) Switch(next *Transport) error {
	if err := next.Open(); err != nil {
		return err
	}
	old, err := t.switchLocked(next)
	if err != nil {
		return err
	}
	old.end()
	old.backend.Release()
	return nil
}

func (t *Transport) switchLocked(next *Transport) (old *target, err error) {
	switching.Lock()
	defer switching.Unlock()
	if t == next {
		return nil, errors.New("cannot switch an access to itself")
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	next.mu.Lock()
	defer next.mu.Unlock()
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

// CloseIdleConnections closes the connections that no request uses. Those of
// transports that clients have brought are not included.
func (t *Transport) CloseIdleConnections() {
	if conns := t.target().conns; conns != nil {
		conns.closeIdle()
	}
}

// Wrapper returns what makes the transport of a client of the one that client-go
// has made for it. A transport of client-go's own is replaced by the connections
// of the backend. Any other, such as one that upgrades connections to SPDY, is
// used as it is. The client's configuration was made for the backend; client-go
// adds the headers to each request because of the credentials in it.
func (t *Transport) Wrapper(backend Backend, added http.Header) func(http.RoundTripper) http.RoundTripper {
	return func(base http.RoundTripper) http.RoundTripper {
		if isPlain(base) {
			base = nil
		}
		return &client{transport: t, base: base, madeFor: backend, added: added}
	}
}

func isPlain(rt http.RoundTripper) bool {
	for {
		switch t := rt.(type) {
		case *http.Transport:
			return true
		case utilnet.RoundTripperWrapper:
			rt = t.WrappedRoundTripper()
		default:
			return false
		}
	}
}

// client is the transport of one client.
type client struct {
	transport *Transport
	base      http.RoundTripper // brought by the client, or nil
	madeFor   Backend           // whose TLS settings base has
	added     http.Header
}

var _ utilnet.RoundTripperWrapper = &client{}

// WrappedRoundTripper implements utilnet.RoundTripperWrapper. It returns nil
// after the end.
func (c *client) WrappedRoundTripper() http.RoundTripper {
	if c.base != nil {
		return c.base
	}
	if conns := c.transport.target().conns; conns != nil {
		return conns.Transport
	}
	return nil
}

// RoundTrip implements http.RoundTripper.
//
// A request that was not sent because its target was replaced, or that only
// reads and has failed while it was, is sent to the next target, if its body
// can be read again. Any other fails as on a dropped connection, since the
// server may have acted on it. A request with a credential that the server
// refuses is repeated once, with another credential.
func (c *client) RoundTrip(req *http.Request) (*http.Response, error) {
	t := c.transport
	for refused := false; ; {
		to := t.current.Load()
		if to.conns == nil {
			if to.owner != nil {
				t = to.owner
				continue
			}
			if err := t.Open(); err != nil {
				closeBody(req)
				return nil, err
			}
			continue
		}
		out, cred, err := to.prepare(req, c)
		if t.current.Load() != to {
			continue // nothing was sent
		}
		if err != nil {
			closeBody(req)
			return nil, to.backend.WrapError(err)
		}
		resp, err := to.send(out, c.base)
		switch {
		case err != nil:
			if req, err = t.afterFailure(req, to, err); err != nil {
				return nil, err
			}
		case resp.StatusCode == http.StatusUnauthorized && !refused:
			again := t.afterRefusal(req, to, c, cred)
			if again == nil {
				return resp, nil
			}
			discard(resp)
			req, refused = again, true
		default:
			return resp, nil
		}
	}
}

// prepare returns the request as it is to be sent, and the credential that was
// added. A request keeps an Authorization header that it has.
func (to *target) prepare(req *http.Request, c *client) (out *http.Request, cred *Credential, err error) {
	if c.base != nil && c.madeFor != to.backend && c.madeFor.TLS() != to.backend.TLS() {
		return nil, nil, fmt.Errorf("%w: the client's own transport has the TLS settings from before a switch, make another client",
			errdefs.ErrReleased)
	}
	u, err := to.servers.locate(req.URL)
	if err != nil {
		return nil, nil, err
	}
	out = req
	if len(c.added) > 0 && c.madeFor != to.backend {
		out = c.withoutAdded(req)
	}
	if to.auth != nil && out.Header.Get("Authorization") == "" {
		if cred, err = to.auth.credential(req.Context()); err != nil {
			return nil, nil, err
		}
	}
	hasToken := cred != nil && cred.Authorization != ""
	if out == req && (hasToken || u != req.URL) {
		out = req.WithContext(req.Context()) // a shallow copy: a RoundTripper must not change a request
	}
	if u != req.URL {
		out.URL, out.Host = u, ""
	}
	if hasToken {
		out.Header = out.Header.Clone()
		if out.Header == nil {
			out.Header = http.Header{}
		}
		out.Header["Authorization"] = []string{cred.Authorization}
	}
	return out, cred, nil
}

// withoutAdded returns a copy of the request without the headers of a backend
// from before a switch.
func (c *client) withoutAdded(req *http.Request) *http.Request {
	out := req.WithContext(req.Context())
	out.Header = req.Header.Clone()
	for name, values := range c.added {
		if slices.Equal(out.Header[name], values) {
			delete(out.Header, name)
		}
	}
	return out
}

// isAuthorized reports whether the request has an Authorization header of the
// caller's own.
func (c *client) isAuthorized(req *http.Request) bool {
	return req.Header.Get("Authorization") != "" && !slices.Equal(req.Header["Authorization"], c.added["Authorization"])
}

// send sends the request over the connections, or a transport that the client
// has brought.
func (to *target) send(req *http.Request, base http.RoundTripper) (*http.Response, error) {
	if base == nil {
		return to.conns.Transport.RoundTrip(req)
	}
	transport, err := to.backend.Wrap(base)
	if err != nil {
		closeBody(req)
		return nil, to.backend.WrapError(err)
	}
	return transport.RoundTrip(req)
}

// afterFailure returns the request to send again after an error, or the error
// for the caller.
func (t *Transport) afterFailure(req *http.Request, to *target, err error) (*http.Request, error) {
	now := t.target()
	if now == to || req.Context().Err() != nil {
		return nil, err
	}
	unsent := errors.Is(err, errEnded)
	switch {
	case unsent && now.ended != nil:
		return nil, now.backend.WrapError(now.ended)
	case !unsent && (now.ended != nil || !onlyReads(req)):
		return nil, err
	}
	if again := rewind(req); again != nil {
		return again, nil
	}
	return nil, err
}

// afterRefusal returns the request to send again with another credential, or
// nil if there is none, the request cannot be repeated, or has an authorization
// of its own.
func (t *Transport) afterRefusal(req *http.Request, to *target, c *client, refused *Credential) *http.Request {
	if c.isAuthorized(req) {
		return nil
	}
	if !isRepeatable(req) {
		if refused != nil {
			to.auth.renew(refused) // for the requests to come
		}
		return nil
	}
	if t.target() == to && (refused == nil || to.auth.replace(req.Context(), refused) == nil) {
		return nil
	}
	return rewind(req)
}

// onlyReads reports whether the request may be made twice.
func onlyReads(req *http.Request) bool {
	switch req.Method {
	case "", http.MethodGet, http.MethodHead, http.MethodOptions:
		return true
	}
	return false
}

// isRepeatable reports whether the request's body can be read again.
func isRepeatable(req *http.Request) bool {
	return req.Body == nil || req.Body == http.NoBody || req.GetBody != nil
}

// rewind returns the request as it was before it was sent, or nil if that is
// not possible.
func rewind(req *http.Request) *http.Request {
	if !isRepeatable(req) {
		return nil
	}
	if req.GetBody == nil {
		return req
	}
	body, err := req.GetBody()
	if err != nil {
		return nil
	}
	again := req.WithContext(req.Context())
	again.Body = body
	return again
}

// discard makes the connection of a response, which is small, free again.
func discard(resp *http.Response) {
	_, _ = io.CopyN(io.Discard, resp.Body, 4<<10)
	_ = resp.Body.Close()
}

func closeBody(req *http.Request) {
	if req.Body != nil {
		_ = req.Body.Close()
	}
}
