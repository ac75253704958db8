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
	"net/http/httptest"
	"sync"
	"testing"
	"time"

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

func TestDrainAfterEndHasNoTimer(t *testing.T) {
	g := NewWithT(t)
	conns := NewConnections(nil)
	g.Expect(conns.begin()).To(BeTrue())
	conns.end()
	conns.drain(time.Now().Add(time.Hour))
	g.Expect(conns.limit).To(BeNil(), "it would hold the connections for an hour")
}

func TestUpgradedConnectionClosesWrite(t *testing.T) {
	g := NewWithT(t)
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		fmt.Fprint(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		all, _ := io.ReadAll(conn)
		_, _ = conn.Write(all)
	}))
	defer s.Close()
	for _, shared := range []bool{false, true} {
		conns := NewConnections(nil)
		if conns.Transport = s.Client().Transport; shared {
			conns.Share(conns.Transport)
		}
		req := newRequest(t, http.MethodGet, s.URL, nil)
		req.Header.Set("Connection", "Upgrade")
		req.Header.Set("Upgrade", "echo")
		g.Expect(conns.begin()).To(BeTrue())
		resp, err := conns.send(req)
		g.Expect(err).NotTo(HaveOccurred())
		_, err = fmt.Fprint(resp.Body.(io.Writer), "hello")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(resp.Body.(interface{ CloseWrite() error }).CloseWrite()).To(Succeed())
		g.Expect(io.ReadAll(resp.Body)).To(BeEquivalentTo("hello"))
		g.Expect(resp.Body.Close()).To(Succeed())
		conns.end()
	}
}

func TestDialContext(t *testing.T) {
	for name, end := range map[string]func(*Connections, net.Conn){
		"the connection is closed":   func(_ *Connections, opened net.Conn) { _ = opened.Close() },
		"the connections are closed": func(conns *Connections, _ net.Conn) { conns.end() },
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			var dialed context.Context
			conns := NewConnections(func(ctx context.Context, _, _ string) (net.Conn, error) {
				dialed = ctx
				near, _ := net.Pipe()
				return near, nil
			})
			opened, err := conns.Dial(t.Context(), "tcp", "c1:443")
			g.Expect(err).NotTo(HaveOccurred())
			g.Consistently(dialed.Err, "50ms").Should(Succeed())
			end(conns, opened)
			g.Eventually(dialed.Err).Should(MatchError(context.Canceled))
		})
	}
	t.Run("dialing fails", func(t *testing.T) {
		g := NewWithT(t)
		var dialed context.Context
		conns := NewConnections(func(ctx context.Context, _, _ string) (net.Conn, error) {
			dialed = ctx
			return nil, errors.New("no route")
		})
		_, err := conns.Dial(t.Context(), "tcp", "c1:443")
		g.Expect(err).To(MatchError("no route"))
		g.Expect(dialed.Err()).To(MatchError(context.Canceled))
	})
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
