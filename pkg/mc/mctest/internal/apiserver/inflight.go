// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import "sync"

// inflight counts requests, so that a server can wait for their end.
type inflight struct {
	mu     sync.Mutex
	count  int           // guarded by mu
	closed bool          // guarded by mu
	idle   chan struct{} // closed when closed and count is 0; made by close
}

// begin reports whether a request may start. If so, end must follow.
func (i *inflight) begin() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.closed {
		return false
	}
	i.count++
	return true
}

func (i *inflight) end() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.count--
	if i.closed && i.count == 0 {
		close(i.idle)
	}
}

// close rejects further requests and waits for the end of the others.
func (i *inflight) close() {
	i.mu.Lock()
	if i.closed {
		i.mu.Unlock()
		return
	}
	i.closed = true
	i.idle = make(chan struct{})
	if i.count == 0 {
		close(i.idle)
	}
	i.mu.Unlock()
	<-i.idle
}
