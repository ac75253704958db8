// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package authn

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
	conns := NewConnections(dialer.dial)
	dial := func() net.Conn {
		conn, err := conns.Dial(t.Context(), "tcp", "c1:443")
		g.Expect(err).NotTo(HaveOccurred())
		return conn
	}
	dial()
	dial()
	conns.end()
	g.Expect(dialer.allClosed()).To(BeTrue())
	_, err := conns.Dial(t.Context(), "tcp", "c1:443")
	g.Expect(err).To(MatchError(errEnded))
	conns.end()

	dialer.err = errors.New("no route")
	_, err = NewConnections(dialer.dial).Dial(t.Context(), "tcp", "c1:443")
	g.Expect(err).To(MatchError("no route"))
}

func TestNoConnectionAfterEnd(t *testing.T) {
	g := NewWithT(t)
	for range 200 {
		dialer := &pipeDialer{}
		conns := NewConnections(dialer.dial)
		var group sync.WaitGroup
		for range 4 {
			group.Go(func() {
				for range 4 {
					_, _ = conns.Dial(context.Background(), "tcp", "c1:443")
				}
			})
		}
		conns.end()
		group.Wait()
		g.Expect(dialer.allClosed()).To(BeTrue())
	}
}
