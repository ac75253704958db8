// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import "sync"

// counters count requests and open watches.
type counters struct {
	mu       sync.Mutex
	requests map[attributes]int // guarded by mu
	watches  map[string]int     // by resource; guarded by mu
}

func (c *counters) request(a attributes) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.requests[a]++
}

func (c *counters) watch(resource string, delta int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.watches[resource] += delta
	if c.watches[resource] == 0 {
		delete(c.watches, resource)
	}
}

// Requests counts the requests of a verb on a resource since the server
// started or the counts were reset. An empty string matches all.
func (s *Server) Requests(verb, resource string) int {
	s.counters.mu.Lock()
	defer s.counters.mu.Unlock()
	n := 0
	for a, count := range s.counters.requests {
		if (verb == "" || a.verb == verb) && (resource == "" || a.names(resource)) {
			n += count
		}
	}
	return n
}

// ResetRequests sets all request counts to zero.
func (s *Server) ResetRequests() {
	s.counters.mu.Lock()
	defer s.counters.mu.Unlock()
	clear(s.counters.requests)
}

// OpenWatches counts the watches of a resource that are open now; of all, if
// it is empty.
func (s *Server) OpenWatches(resource string) int {
	s.counters.mu.Lock()
	defer s.counters.mu.Unlock()
	n := 0
	for r, count := range s.counters.watches {
		if resource == "" || (attributes{resource: r}).names(resource) {
			n += count
		}
	}
	return n
}
