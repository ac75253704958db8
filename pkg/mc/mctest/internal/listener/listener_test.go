// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package listener

import (
	"errors"
	"io"
	"net"
	"sync"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"go.uber.org/goleak"
)

// echo serves a listener until it closes: it sends back what it reads.
func echo(t *testing.T, l *Listener) {
	t.Helper()
	inner := l.Inner()
	var conns sync.WaitGroup
	conns.Go(func() {
		for {
			c, err := inner.Accept()
			if err != nil {
				return
			}
			conns.Go(func() {
				defer c.Close()
				_, _ = io.Copy(c, c) // It ends with an error when the connection does.
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		l.Release()
		l.CloseConnections(false)
		conns.Wait()
	})
}

func newListener(t *testing.T) *Listener {
	t.Helper()
	t.Cleanup(func() { goleak.VerifyNone(t) })
	l, err := New()
	if err != nil {
		t.Fatal(err)
	}
	echo(t, l)
	return l
}

func dial(t *testing.T, l *Listener) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", l.Address())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// say sends a byte and waits for its echo.
func say(c net.Conn, within time.Duration) error {
	if err := c.SetDeadline(time.Now().Add(within)); err != nil {
		return err
	}
	if _, err := c.Write([]byte{1}); err != nil {
		return err
	}
	_, err := io.ReadFull(c, make([]byte, 1))
	return err
}

const (
	long  = 10 * time.Second
	brief = 100 * time.Millisecond
)

func TestReopen(t *testing.T) {
	g := NewWithT(t)
	l := newListener(t)
	c := dial(t, l)
	g.Expect(say(c, long)).To(Succeed())
	address := l.Address()
	l.Close()
	_, err := net.Dial("tcp", address)
	g.Expect(errors.Is(err, syscall.ECONNREFUSED)).To(BeTrue(), "%v", err)
	g.Expect(say(c, long)).To(Succeed(), "open connections stay open")
	g.Expect(l.Inner()).To(BeNil())

	g.Expect(l.Open()).To(Succeed())
	g.Expect(l.Address()).To(Equal(address))
	echo(t, l)
	g.Expect(say(dial(t, l), long)).To(Succeed())
	g.Expect(l.Connections()).To(Equal(2))
}

func TestReset(t *testing.T) {
	g := NewWithT(t)
	l := newListener(t)
	c := dial(t, l)
	g.Expect(say(c, long)).To(Succeed())
	l.SetReset(true)
	l.CloseConnections(true)
	g.Expect(l.Connections()).To(BeZero())
	_, err := c.Read(make([]byte, 1))
	g.Expect(errors.Is(err, syscall.ECONNRESET)).To(BeTrue(), "%v", err)
	if fresh, err := net.Dial("tcp", l.Address()); err == nil { // It may be reset before it is known to be open.
		g.Expect(say(fresh, long)).NotTo(Succeed())
		g.Expect(fresh.Close()).To(Succeed())
	}
	l.SetReset(false)
	g.Expect(say(dial(t, l), long)).To(Succeed())
}

func TestFreeze(t *testing.T) {
	g := NewWithT(t)
	l := newListener(t)
	c := dial(t, l)
	g.Expect(say(c, long)).To(Succeed())
	l.SetFrozen(true)
	l.SetFrozen(true)
	g.Expect(say(c, brief)).To(MatchError(ContainSubstring("timeout")))
	l.SetFrozen(false)
	g.Expect(c.SetDeadline(time.Now().Add(long))).To(Succeed())
	_, err := io.ReadFull(c, make([]byte, 1))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(say(c, long)).To(Succeed())
}

func TestCloseWhileFrozen(t *testing.T) {
	g := NewWithT(t)
	l := newListener(t)
	c := dial(t, l)
	g.Expect(say(c, long)).To(Succeed())
	l.SetFrozen(true)
	g.Expect(say(c, brief)).NotTo(Succeed())
	l.CloseConnections(false)
	g.Eventually(l.Connections).Should(BeZero())
}
