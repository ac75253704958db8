// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package realfleet

import (
	"bufio"
	"io"
	"net"
	"testing"

	. "github.com/onsi/gomega"
	"go.uber.org/goleak"
)

func TestForwarder(t *testing.T) {
	g := NewWithT(t)
	echo, err := net.Listen("tcp", "127.0.0.1:0")
	g.Expect(err).NotTo(HaveOccurred())
	served := make(chan struct{})
	go func() {
		defer close(served)
		for {
			conn, err := echo.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				_, _ = io.Copy(conn, conn)
			}()
		}
	}()
	f, err := NewForwarder(echo.Addr().String())
	g.Expect(err).NotTo(HaveOccurred())

	first := dial(g, f)
	g.Expect(first.ask("hello")).To(Equal("hello\n"))

	f.Cut()
	g.Expect(first.ask("still there?")).To(BeEmpty(), "the connection is closed")

	second := dial(g, f)
	g.Expect(second.ask("hello again")).To(Equal("hello again\n"), "a new connection works")

	f.Close()
	g.Expect(second.ask("and now?")).To(BeEmpty())
	_, err = net.Dial("tcp", f.Addr())
	g.Expect(err).To(HaveOccurred(), "the listener is closed")

	g.Expect(echo.Close()).To(Succeed())
	<-served
	goleak.VerifyNone(t)
}

func TestForwarderWithoutTarget(t *testing.T) {
	g := NewWithT(t)
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(closed.Close()).To(Succeed())

	f, err := NewForwarder(closed.Addr().String())
	g.Expect(err).NotTo(HaveOccurred())
	defer f.Close()
	g.Expect(dial(g, f).ask("hello")).To(BeEmpty())
}

type caller struct {
	conn   net.Conn
	answer *bufio.Reader
}

func dial(g *WithT, f *Forwarder) *caller {
	conn, err := net.Dial("tcp", f.Addr())
	g.Expect(err).NotTo(HaveOccurred())
	return &caller{conn: conn, answer: bufio.NewReader(conn)}
}

// ask sends a line and returns the one that comes back, "" where the connection
// has ended.
func (c *caller) ask(line string) string {
	_, _ = io.WriteString(c.conn, line+"\n")
	answer, err := c.answer.ReadString('\n')
	if err != nil {
		_ = c.conn.Close()
	}
	return answer
}
