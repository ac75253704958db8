// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"

	"github.com/rollcall-dev/rollcall/pkg/credentials"
)

// errLeft is what requests get that are made after their cluster has left.
var errLeft = errors.New("the cluster has left the fleet")

// swapTransport is the transport of one cluster for as long as that is
// engaged. What is under it, and the address that requests go to, can be
// exchanged at any time; clients and caches above notice dropped connections
// at most.
type swapTransport struct {
	// base is the address that clients were made with.
	base    *url.URL
	current atomic.Pointer[target]
	// created is what signs are counted from, by the monotonic clock.
	created time.Time
	clock   clock.PassiveClock
	// sign is when something came from the cluster last, as time since created.
	sign atomic.Int64
	// dropped is set when a request has failed or a watch has ended: whoever
	// answers afterwards may be somebody else.
	dropped atomic.Bool
	// watches is the number of watches that are open.
	watches atomic.Int64
}

// target is where requests go and how.
type target struct {
	server    *url.URL
	shown     string // the server
	transport http.RoundTripper
	beneath   http.RoundTripper // the access's own, under what REST options wrap it in
	// expiry tells when the credential expires, if that is known.
	expiry func() (time.Time, bool)
}

func newTarget(server string, transport http.RoundTripper) (*target, error) {
	u, err := url.Parse(server)
	if err != nil || u.Host == "" {
		return nil, fmt.Errorf("server %q is not a URL with a host", shown(server))
	}
	u.Path = strings.TrimSuffix(u.Path, "/")
	return &target{server: u, shown: shown(server), transport: transport}, nil
}

// newSwapTransport returns a transport to the target, or, for nil, one that
// nothing is sent over.
func newSwapTransport(first *target, c clock.PassiveClock) *swapTransport {
	t := &swapTransport{clock: c, created: c.Now()}
	if first != nil {
		t.base = first.server
		t.current.Store(first)
	}
	return t
}

// swap sends the requests that follow to another target.
func (t *swapTransport) swap(next *target) {
	t.current.Store(next)
}

// close fails the requests that follow.
func (t *swapTransport) close() {
	t.current.Store(nil)
}

// RoundTrip implements http.RoundTripper. A request that the exchange of its
// target has kept from being sent goes to the next one, and so does one that
// only reads and has failed meanwhile. Any other that was under way fails as on
// a dropped connection: the cluster may have done what it asks for.
func (t *swapTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	for {
		current := t.current.Load()
		resp, err := t.send(req, current)
		if err == nil || req.Context().Err() != nil || t.current.Load() == current {
			return resp, err
		}
		if !errors.Is(err, credentials.ErrReleased) && !onlyReads(req) {
			return nil, err
		}
		next, ok := rewind(req)
		if !ok {
			return nil, err
		}
		req = next
	}
}

// onlyReads tells whether a request may be made twice.
func onlyReads(req *http.Request) bool {
	switch req.Method {
	case "", http.MethodGet, http.MethodHead, http.MethodOptions:
		return true
	}
	return false
}

// rewind returns the request as it was before it was sent, and whether that is
// possible.
func rewind(req *http.Request) (*http.Request, bool) {
	if req.Body == nil || req.Body == http.NoBody {
		return req, true
	}
	if req.GetBody == nil {
		return nil, false
	}
	body, err := req.GetBody()
	if err != nil {
		return nil, false
	}
	req = req.WithContext(req.Context()) // a shallow copy: a request must not be changed
	req.Body = body
	return req, true
}

func (t *swapTransport) send(req *http.Request, current *target) (*http.Response, error) {
	if current == nil {
		if req.Body != nil {
			req.Body.Close()
		}
		return nil, errLeft
	}
	if current.server != t.base {
		req = req.WithContext(req.Context()) // a shallow copy: a request must not be changed
		req.URL = t.translate(req.URL, current.server)
		req.Host = ""
	}
	resp, err := current.transport.RoundTrip(req)
	if err != nil {
		t.dropped.Store(true)
		return nil, err
	}
	if resp.StatusCode < http.StatusMultipleChoices { // anything else may be a proxy's
		t.signed()
	}
	if resp.StatusCode != http.StatusSwitchingProtocols { // whose body is written to as well
		body := &signingBody{ReadCloser: resp.Body, transport: t}
		if isWatch(req) {
			t.watches.Add(1)
			body.closed = sync.OnceFunc(func() { t.watches.Add(-1) })
		}
		resp.Body = body
	}
	return resp, nil
}

func (t *swapTransport) signed() {
	t.sign.Store(int64(t.clock.Since(t.created)))
}

// lastSign returns when the cluster gave a sign of life last.
func (t *swapTransport) lastSign() time.Time {
	return t.created.Add(time.Duration(t.sign.Load()))
}

// signingBody notes what comes, such as the events of a watch.
type signingBody struct {
	io.ReadCloser
	transport *swapTransport
	closed    func() // of a watch: called when it is closed
}

// Close implements io.Closer.
func (b *signingBody) Close() error {
	if b.closed != nil {
		b.closed()
	}
	return b.ReadCloser.Close()
}

func isWatch(req *http.Request) bool {
	query := req.URL.Query()
	return query.Get("watch") == "true" || query.Get("watch") == "1"
}

func (b *signingBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if n > 0 {
		b.transport.signed()
	}
	if err != nil && b.closed != nil {
		b.transport.dropped.Store(true)
	}
	return n, err
}

// translate gives a URL below base its place below server.
func (t *swapTransport) translate(u, server *url.URL) *url.URL {
	moved := *u
	moved.Scheme, moved.Host = server.Scheme, server.Host
	if rest, ok := strings.CutPrefix(u.Path, t.base.Path); ok {
		moved.Path = server.Path + rest
	}
	if rest, ok := strings.CutPrefix(u.RawPath, t.base.EscapedPath()); ok && u.RawPath != "" {
		moved.RawPath = server.EscapedPath() + rest
	}
	return &moved
}
