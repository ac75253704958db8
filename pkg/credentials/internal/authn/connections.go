// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package authn

import (
	"context"
	"errors"
	"net"
	"net/http"
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

	// Shared reports that others use Base too.
	Shared bool

	dialer *connrotation.Dialer
	ended  atomic.Bool
}

// NewConnections returns Connections without a transport. They are opened by
// the function or, if that is nil, by a net.Dialer.
func NewConnections(dial connrotation.DialFunc) *Connections {
	if dial == nil {
		dial = (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext
	}
	return &Connections{dialer: connrotation.NewDialer(dial)}
}

// Dial opens a connection.
func (c *Connections) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	if c.ended.Load() {
		return nil, errEnded
	}
	conn, err := c.dialer.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	if c.ended.Load() { // possibly after end has closed what was open
		_ = conn.Close()
		return nil, errEnded
	}
	return conn, nil
}

// closeIdle closes the connections that no request uses.
func (c *Connections) closeIdle() { utilnet.CloseIdleConnectionsFor(c.Base) }

// end closes all connections. No more are opened.
func (c *Connections) end() {
	c.ended.Store(true)
	c.dialer.CloseAll()
	if !c.Shared {
		c.closeIdle()
	}
}
