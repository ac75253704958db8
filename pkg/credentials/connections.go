// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"context"
	"net"
	"sync"
	"time"
)

// dialFunc opens a connection.
type dialFunc func(ctx context.Context, network, address string) (net.Conn, error)

func defaultDial() dialFunc {
	return (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext
}

// connections opens connections and can close all that are open.
type connections struct {
	open dialFunc

	mu    sync.Mutex // guards what follows
	conns map[*connection]struct{}
	ended error // not nil once no more are opened
}

func newConnections(open dialFunc) *connections {
	return &connections{open: open, conns: map[*connection]struct{}{}}
}

// dial is a dialFunc.
func (c *connections) dial(ctx context.Context, network, address string) (net.Conn, error) {
	if err := c.err(); err != nil {
		return nil, err
	}
	opened, err := c.open(ctx, network, address)
	if err != nil {
		return nil, err
	}
	conn := &connection{Conn: opened, owner: c}

	c.mu.Lock()
	ended := c.ended
	if ended == nil {
		c.conns[conn] = struct{}{}
	}
	c.mu.Unlock()
	if ended != nil {
		_ = opened.Close()
		return nil, ended
	}
	return conn, nil
}

// err returns why no more connections are opened, or nil.
func (c *connections) err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ended
}

// closeAll closes what is open.
func (c *connections) closeAll() {
	c.mu.Lock()
	conns := c.conns
	c.conns = map[*connection]struct{}{}
	c.mu.Unlock()
	for conn := range conns {
		_ = conn.Conn.Close()
	}
}

// end closes what is open and lets dial fail with the error from then on.
func (c *connections) end(err error) {
	c.mu.Lock()
	if c.ended == nil {
		c.ended = err
	}
	c.mu.Unlock()
	c.closeAll()
}

// connection is one that its owner knows of.
type connection struct {
	net.Conn
	owner *connections
}

func (c *connection) Close() error {
	c.owner.mu.Lock()
	delete(c.owner.conns, c)
	c.owner.mu.Unlock()
	return c.Conn.Close()
}
