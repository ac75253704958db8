// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package listener

import (
	"errors"
	"net"
	"syscall"
	"testing"

	. "github.com/onsi/gomega"
)

// modest listens on an address unless it is in use, like sockets whose port the
// system picks.
func modest(t *testing.T, address string) error {
	t.Helper()
	config := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		var optionErr error
		err := c.Control(func(fd uintptr) {
			optionErr = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 0)
		})
		return errors.Join(err, optionErr)
	}}
	l, err := config.Listen(t.Context(), "tcp4", address)
	if err != nil {
		return err
	}
	return l.Close()
}

func TestClosedListenerKeepsPort(t *testing.T) {
	g := NewWithT(t)
	l := newListener(t)
	l.Close()
	err := modest(t, l.Address())
	g.Expect(errors.Is(err, syscall.EADDRINUSE)).To(BeTrue(), "%v", err)
	g.Expect(l.Open()).To(Succeed())
	echo(t, l)
	g.Expect(say(dial(t, l), long)).To(Succeed())
}

func TestReleaseFreesPort(t *testing.T) {
	g := NewWithT(t)
	l := newListener(t)
	l.Close()
	l.Release()
	g.Expect(modest(t, l.Address())).To(Succeed())
}
