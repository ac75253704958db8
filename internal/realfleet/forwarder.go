// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package realfleet

import (
	"io"
	"net"
	"sync"
)

// Forwarder is the network between the controller and a member: it passes TCP
// connections on, and can cut them.
type Forwarder struct {
	listener net.Listener
	target   string
	running  sync.WaitGroup

	mu     sync.Mutex // guards what follows
	closed bool
	conns  map[net.Conn]struct{}
}

// NewForwarder returns a forwarder to the target, a host and port, that
// listens on a port of its own.
func NewForwarder(target string) (*Forwarder, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	f := &Forwarder{listener: listener, target: target, conns: map[net.Conn]struct{}{}}
	f.running.Go(f.accept)
	return f, nil
}

// Addr returns the host and port that are listened on.
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
	for _, way := range [][2]net.Conn{{server, client}, {client, server}} {
		copying.Go(func() {
			_, _ = io.Copy(way[0], way[1])
			// Neither side has a use for half a connection.
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
	return !f.closed
}

func (f *Forwarder) remove(conns ...net.Conn) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, conn := range conns {
		delete(f.conns, conn)
	}
}

// Cut closes all connections. New ones are passed on.
func (f *Forwarder) Cut() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for conn := range f.conns {
		_ = conn.Close()
	}
}

// Close closes all connections and takes no more.
func (f *Forwarder) Close() {
	_ = f.listener.Close()
	f.mu.Lock()
	f.closed = true
	f.mu.Unlock()
	f.Cut()
	f.running.Wait()
}
