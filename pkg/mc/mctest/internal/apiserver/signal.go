// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import "sync"

// signal wakes all goroutines that wait on its channel.
type signal struct {
	mu sync.Mutex
	ch chan struct{} // guarded by mu
}

// wait returns a channel that is closed at the next signal.
func (s *signal) wait() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ch == nil {
		s.ch = make(chan struct{})
	}
	return s.ch
}

func (s *signal) signal() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ch != nil {
		close(s.ch)
		s.ch = nil
	}
}
