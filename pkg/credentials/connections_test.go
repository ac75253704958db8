// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"

	. "github.com/onsi/gomega"
)

// pipeDialer opens one end of a pipe and keeps the other.
type pipeDialer struct {
	mu    sync.Mutex
	peers []net.Conn
	err   error
}

func (d *pipeDialer) dial(context.Context, string, string) (net.Conn, error) {
	if d.err != nil {
		return nil, d.err
	}
	near, far := net.Pipe()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.peers = append(d.peers, far)
	return near, nil
}

func (d *pipeDialer) allClosed() bool {
	for _, peer := range d.peers {
		if _, err := peer.Write(nil); err == nil {
			return false
		}
	}
	return true
}

func TestConnections(t *testing.T) {
	g := NewWithT(t)
	dialer := &pipeDialer{}
	conns := newConnections(dialer.dial)
	dial := func() net.Conn {
		conn, err := conns.dial(t.Context(), "tcp", "c1:443")
		g.Expect(err).NotTo(HaveOccurred())
		return conn
	}
	g.Expect(dial().Close()).To(Succeed())
	g.Expect(conns.conns).To(BeEmpty(), "what is closed is forgotten")

	dial()
	dial()
	conns.closeAll()
	g.Expect(conns.conns).To(BeEmpty())
	g.Expect(dialer.allClosed()).To(BeTrue())
	dial()
	conns.end(ErrReleased)
	g.Expect(dialer.allClosed()).To(BeTrue())
	_, err := conns.dial(t.Context(), "tcp", "c1:443")
	g.Expect(err).To(MatchError(ErrReleased))
	conns.end(ErrClosed)
	g.Expect(conns.err()).To(MatchError(ErrReleased), "the first reason holds")

	dialer.err = errors.New("no route")
	_, err = newConnections(dialer.dial).dial(t.Context(), "tcp", "c1:443")
	g.Expect(err).To(MatchError("no route"))
}

func TestNoConnectionEscapesTheEnd(t *testing.T) {
	g := NewWithT(t)
	for range 200 {
		dialer := &pipeDialer{}
		conns := newConnections(dialer.dial)
		var group sync.WaitGroup
		for range 4 {
			group.Go(func() {
				for range 4 {
					_, _ = conns.dial(context.Background(), "tcp", "c1:443")
				}
			})
		}
		conns.end(ErrReleased)
		group.Wait()
		g.Expect(dialer.allClosed()).To(BeTrue())
	}
}
