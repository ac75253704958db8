// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package listener

import (
	"net/netip"
	"syscall"
)

// hold binds an address without listening on it: connections to it are refused,
// and no other socket gets its port. It does nothing if the address is in use.
func hold(address string) (release func()) {
	none := func() {}
	addr, err := netip.ParseAddrPort(address)
	if err != nil {
		return none
	}
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return none
	}
	release = func() { syscall.Close(fd) }
	// Go sets it on listeners too, so that both can share the port.
	if err := syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1); err != nil {
		release()
		return none
	}
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Port: int(addr.Port()), Addr: addr.Addr().As4()}); err != nil {
		release()
		return none
	}
	return release
}
