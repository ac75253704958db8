// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package authn

import (
	"context"
	"errors"
	"net"
	"net/http"
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

// end closes all connections. No more are opened.
func (c *Connections) end() {
	c.cancel()
	c.dialer.CloseAll()
	if !c.Shared {
		c.closeIdle()
	}
}
