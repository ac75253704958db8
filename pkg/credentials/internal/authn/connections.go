// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package authn

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/util/connrotation"
)

// errEnded is the error of a request for which no connection was opened,
// because its Connections had ended. It was not sent.
var errEnded = errors.New("connections were closed before the request was sent")

// Connections is a transport together with the connections that it opens.
type Connections struct {
	// Transport sends requests over the connections, which it opens by Dial.
	Transport http.RoundTripper

	// Base is the transport below the wrappers of Transport: the one that has
	// idle connections. May be nil.
	Base http.RoundTripper

	// Shared reports that others use Base too. See Share.
	Shared bool

	// replaced are earlier ones that may still be draining. They do not change once
	// requests begin.
	replaced []*Connections

	mu       sync.Mutex // guards what follows
	requests int        // under way
	draining bool       // no more requests begin
	limit    *time.Timer

	*opener
}

// opener must not refer to the transport.
type opener struct {
	dialer  *connrotation.Dialer
	closing context.Context // the lifetime of the Connections
	cancel  context.CancelFunc
}

// conn is a connection of a caller's dial function, which may end with the
// context that it was opened with.
type conn struct {
	net.Conn
	cancel context.CancelFunc
}

// Close implements net.Conn.
func (c *conn) Close() error {
	defer c.cancel()
	return c.Conn.Close()
}

// NewConnections returns Connections without a transport. They are opened by
// the function or, if that is nil, by a net.Dialer.
func NewConnections(dial connrotation.DialFunc) *Connections {
	own := dial == nil
	if own {
		dial = (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext
	}
	closing, end := context.WithCancel(context.Background())
	return &Connections{opener: &opener{closing: closing, cancel: end, dialer: connrotation.NewDialer(
		func(ctx context.Context, network, address string) (net.Conn, error) {
			ctx, cancel := context.WithCancel(ctx)
			defer context.AfterFunc(closing, cancel)()
			opened, err := dial(ctx, network, address)
			if err != nil || own {
				cancel()
				return opened, err
			}
			return &conn{Conn: opened, cancel: cancel}, nil
		})}}
}

// Dial opens a connection.
func (c *opener) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := c.dialer.DialContext(ctx, network, address)
	switch {
	case c.closing.Err() == nil:
		return conn, err
	case err == nil: // possibly after end has closed what was open
		_ = conn.Close()
	}
	return nil, errEnded
}

// closeIdle closes the connections that no request uses, also those that a
// caller's wrapper has of its own.
func (c *Connections) closeIdle() {
	for transport := c.Transport; transport != nil; {
		switch t := transport.(type) {
		case interface{ CloseIdleConnections() }:
			t.CloseIdleConnections()
			transport = nil
		case utilnet.RoundTripperWrapper:
			transport = t.WrappedRoundTripper()
		default:
			transport = nil // it does not tell what it wraps
		}
	}
	utilnet.CloseIdleConnectionsFor(c.Base)
}

// send sends a request, for which begin has returned true. It is under way until
// the body of the response ends.
func (c *Connections) send(req *http.Request) (*http.Response, error) {
	resp, err := c.Transport.RoundTrip(req)
	if err != nil || resp.Body == http.NoBody {
		c.done()
		return resp, err
	}
	b := &countedBody{ReadCloser: resp.Body, conns: c}
	if upgraded, ok := resp.Body.(io.Writer); ok {
		resp.Body = &upgradedBody{b, upgraded}
	} else {
		resp.Body = b
	}
	return resp, nil
}

// begin counts a request. It returns false if there may be no more: the
// connections have been replaced or have ended.
func (c *Connections) begin() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.draining || c.closing.Err() != nil {
		return false
	}
	c.requests++
	return true
}

// done ends a request that has begun.
func (c *Connections) done() {
	c.mu.Lock()
	c.requests--
	drained := c.draining && c.requests == 0
	c.mu.Unlock()
	if drained {
		c.close()
	}
}

// drain lets no more requests begin. The connections are closed at once if no
// request uses them, and all of them when the requests under way have ended, or at
// the limit, unless that is zero.
func (c *Connections) drain(limit time.Time) {
	now := time.Now()
	c.mu.Lock()
	c.draining = true
	drained := c.requests == 0 || c.closing.Err() != nil || !limit.IsZero() && !now.Before(limit)
	if !drained && !limit.IsZero() {
		c.limit = time.AfterFunc(limit.Sub(now), c.close)
	}
	c.mu.Unlock()
	if drained {
		c.close()
	} else if !c.Shared {
		c.closeIdle()
	}
}

// succeed notes the connections that these replace.
func (c *Connections) succeed(old *Connections) {
	for _, replaced := range append([]*Connections{old}, old.replaced...) {
		if replaced.closing.Err() == nil {
			c.replaced = append(c.replaced, replaced)
		}
	}
}

// end closes all connections, also the replaced ones. No more are opened.
func (c *Connections) end() {
	c.close()
	for _, replaced := range c.replaced {
		replaced.close()
	}
}

func (c *Connections) close() {
	c.cancel()
	c.dialer.CloseAll()
	if !c.Shared {
		c.closeIdle()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.limit != nil {
		c.limit.Stop()
	}
}

// countedBody is the body of a response. The request is under way until it ends.
type countedBody struct {
	io.ReadCloser
	conns *Connections
	ended atomic.Bool
}

// Read implements io.Reader.
func (b *countedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		b.end()
	}
	return n, err
}

// Close implements io.Closer.
func (b *countedBody) Close() error {
	defer b.end()
	return b.ReadCloser.Close()
}

func (b *countedBody) end() {
	if !b.ended.Swap(true) {
		b.conns.done()
	}
}

// upgradedBody is the body of a response that upgrades the connection.
type upgradedBody struct {
	io.ReadCloser
	io.Writer
}

// CloseWrite ends one direction only, as a reverse proxy does at the end of the
// standard input of a command.
func (b *upgradedBody) CloseWrite() error {
	if w, ok := b.Writer.(interface{ CloseWrite() error }); ok {
		return w.CloseWrite()
	}
	return fmt.Errorf("CloseWrite: %w", errors.ErrUnsupported)
}
