// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Package listener provides a TCP address on loopback for a test server, whose
// connections can be refused, reset, closed or frozen.
package listener

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"sync"
	"time"
)

// reopenTimeout bounds how long Open tries to get its port back.
const reopenTimeout = 10 * time.Second

// Listener is an address on 127.0.0.1 that can be closed and opened again. Its
// methods may be called concurrently, but Open and Close by one caller at a
// time.
type Listener struct {
	address string

	mu sync.Mutex
	// Guarded by mu.
	inner  net.Listener // nil while closed
	hold   func()       // releases the port that a closed listener holds
	conns  map[*Conn]struct{}
	reset  bool
	frozen chan struct{} // nil unless frozen; closed to thaw
}

// New opens a listener on a free port.
func New() (*Listener, error) {
	l := &Listener{conns: map[*Conn]struct{}{}}
	inner, err := listen("127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	l.inner, l.address = inner, inner.Addr().String()
	return l, nil
}

func listen(address string) (net.Listener, error) {
	var config net.ListenConfig
	// Close closes the listener, not a context.
	return config.Listen(context.Background(), "tcp4", address)
}

// Address is host and port. It stays the same while the listener is closed.
func (l *Listener) Address() string { return l.address }

// Inner returns the listener that a server accepts from, or nil while closed.
func (l *Listener) Inner() net.Listener {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.inner == nil {
		return nil
	}
	return &acceptor{Listener: l.inner, owner: l}
}

// Close refuses new connections. Open ones stay open. Where the system allows
// it, the port is kept from other sockets.
func (l *Listener) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.inner == nil {
		return
	}
	l.inner.Close()
	l.inner = nil
	l.hold = hold(l.address)
}

// Release releases a closed listener's port.
func (l *Listener) Release() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.hold != nil {
		l.hold()
		l.hold = nil
	}
}

// Open accepts connections again after Close, on the same port.
func (l *Listener) Open() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.inner != nil {
		return nil
	}
	var err error
	for deadline := time.Now().Add(reopenTimeout); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		var inner net.Listener
		if inner, err = listen(l.address); err == nil {
			l.inner = inner
			if l.hold != nil {
				l.hold()
				l.hold = nil
			}
			return nil
		}
	}
	return fmt.Errorf("reopening %s: %w", l.address, err)
}

// SetReset sets whether each new connection ends at once with a TCP reset.
func (l *Listener) SetReset(on bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.reset = on
}

// SetFrozen sets whether all bytes stop, in both directions and on all
// connections. New connections are accepted.
func (l *Listener) SetFrozen(on bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case on && l.frozen == nil:
		l.frozen = make(chan struct{})
	case !on && l.frozen != nil:
		close(l.frozen)
		l.frozen = nil
	}
}

// Connections counts the open connections.
func (l *Listener) Connections() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.conns)
}

// CloseConnections closes all connections, with a TCP reset if reset is set.
func (l *Listener) CloseConnections(reset bool) {
	l.mu.Lock()
	conns := slices.Collect(maps.Keys(l.conns))
	l.mu.Unlock()
	for _, c := range conns {
		if reset {
			c.Reset()
		} else {
			c.Close()
		}
	}
}

func (l *Listener) gate() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.frozen
}

// adopt tracks a connection, and reports whether to reset it: if all connections
// are reset, or if the listener was closed while it was accepted.
func (l *Listener) adopt(c *Conn) (reset bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.reset || l.inner == nil {
		return true
	}
	l.conns[c] = struct{}{}
	return false
}

func (l *Listener) forget(c *Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.conns, c)
}

type acceptor struct {
	net.Listener
	owner *Listener
}

// Accept returns the next connection that is not reset.
func (a *acceptor) Accept() (net.Conn, error) {
	for {
		inner, err := a.Listener.Accept()
		if err != nil {
			return nil, err
		}
		c := &Conn{Conn: inner, owner: a.owner, done: make(chan struct{})}
		if a.owner.adopt(c) {
			c.Reset()
			continue
		}
		return c, nil
	}
}

// Conn is a connection that its listener can close and freeze.
type Conn struct {
	net.Conn
	owner *Listener
	once  sync.Once
	done  chan struct{}
}

// Reset closes the connection with a TCP reset.
func (c *Conn) Reset() {
	if tcp, ok := c.Conn.(*net.TCPConn); ok {
		tcp.SetLinger(0) //nolint:errcheck // It is closed in any case.
	}
	c.Close()
}

// Close ends the connection.
func (c *Conn) Close() error {
	err := net.ErrClosed
	c.once.Do(func() {
		close(c.done)
		c.owner.forget(c)
		err = c.Conn.Close()
	})
	return err
}

// Read reads when the listener is not frozen. Bytes that arrive while it is
// frozen are delivered afterwards.
func (c *Conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if thawErr := c.thawed(); thawErr != nil && err == nil {
		return 0, thawErr
	}
	return n, err
}

// Write writes when the listener is not frozen.
func (c *Conn) Write(p []byte) (int, error) {
	if err := c.thawed(); err != nil {
		return 0, err
	}
	return c.Conn.Write(p)
}

func (c *Conn) thawed() error {
	for {
		gate := c.owner.gate()
		if gate == nil {
			return nil
		}
		select {
		case <-gate:
		case <-c.done:
			return errors.Join(net.ErrClosed, errors.New("connection was frozen"))
		}
	}
}
