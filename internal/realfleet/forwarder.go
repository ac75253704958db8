// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package realfleet

import (
	"io"
	"net"
	"sync"
)

// Forwarder is the network between the controller and a member. It forwards TCP
// connections, and can close them.
type Forwarder struct {
	listener net.Listener
	target   string
	running  sync.WaitGroup

	mu     sync.Mutex // guards the fields below
	closed bool
	down   bool
	conns  map[net.Conn]struct{}
}

// NewForwarder returns a forwarder to the target, a host and port. It listens on
// a free port.
func NewForwarder(target string) (*Forwarder, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	f := &Forwarder{listener: listener, target: target, conns: map[net.Conn]struct{}{}}
	f.running.Go(f.accept)
	return f, nil
}

// Addr returns the host and port of the listener.
func (f *Forwarder) Addr() string { return f.listener.Addr().String() }

func (f *Forwarder) accept() {
	for {
		conn, err := f.listener.Accept()
		if err != nil {
			return
		}
		f.running.Go(func() { f.forward(conn) })
	}
}

func (f *Forwarder) forward(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", f.target)
	if err != nil {
		return
	}
	defer server.Close()
	if !f.add(client, server) {
		return
	}
	defer f.remove(client, server)

	var copying sync.WaitGroup
	for _, c := range [][2]net.Conn{{server, client}, {client, server}} {
		copying.Go(func() {
			_, _ = io.Copy(c[0], c[1])
			// Half a connection is useless.
			_ = client.Close()
			_ = server.Close()
		})
	}
	copying.Wait()
}

func (f *Forwarder) add(conns ...net.Conn) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, conn := range conns {
		f.conns[conn] = struct{}{}
	}
	return !f.closed && !f.down
}

func (f *Forwarder) remove(conns ...net.Conn) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, conn := range conns {
		delete(f.conns, conn)
	}
}

// Cut closes all connections. New connections are forwarded.
func (f *Forwarder) Cut() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for conn := range f.conns {
		_ = conn.Close()
	}
}

// SetDown closes all connections, and new ones at once, until it is set to false.
func (f *Forwarder) SetDown(down bool) {
	f.mu.Lock()
	f.down = down
	f.mu.Unlock()
	if down {
		f.Cut()
	}
}

// Close closes all connections and the listener.
func (f *Forwarder) Close() {
	_ = f.listener.Close()
	f.mu.Lock()
	f.closed = true
	f.mu.Unlock()
	f.Cut()
	f.running.Wait()
}
