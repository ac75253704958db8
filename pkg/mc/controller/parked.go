// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"maps"
	"slices"
	"time"

	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
)

const (
	// maxParked bounds the requests that a controller keeps for clusters that
	// may never come. What does not fit is tried again after a time instead.
	maxParked = 10_000

	// parkRetry is when a request is tried again whose cluster was engaged just
	// before it was parked.
	parkRetry = time.Second
)

// parked has requests by the cluster whose engagement they wait for, and for
// each that cluster. The zero value is empty.
type parked[request comparable] struct {
	requests map[multicluster.ClusterName]map[request]struct{}
	until    map[request]multicluster.ClusterName
}

func (p *parked[request]) add(req request, until multicluster.ClusterName) bool {
	p.remove(req)
	if len(p.until) == maxParked {
		return false
	}
	if p.until == nil {
		p.requests = map[multicluster.ClusterName]map[request]struct{}{}
		p.until = map[request]multicluster.ClusterName{}
	}
	if p.requests[until] == nil {
		p.requests[until] = map[request]struct{}{}
	}
	p.requests[until][req] = struct{}{}
	p.until[req] = until
	return true
}

func (p *parked[request]) has(req request) bool {
	_, ok := p.until[req]
	return ok
}

func (p *parked[request]) remove(req request) {
	until, ok := p.until[req]
	if !ok {
		return
	}
	delete(p.until, req)
	delete(p.requests[until], req)
	if len(p.requests[until]) == 0 {
		delete(p.requests, until)
	}
}

// take returns the requests that wait for the cluster and forgets them.
func (p *parked[request]) take(name multicluster.ClusterName) []request {
	requests := slices.Collect(maps.Keys(p.requests[name]))
	for _, req := range requests {
		p.remove(req)
	}
	return requests
}

// drop forgets the requests of a cluster that has left.
func (p *parked[request]) drop(of func(request) bool) {
	for req := range p.until {
		if of(req) {
			p.remove(req)
		}
	}
}

// park keeps a request until the cluster is engaged with the controller, and
// tells whether there was room for it. The engagement is that of the request's
// own cluster, nil if there is none.
func (c *mcController[request]) park(req request, of *engagement[request], until multicluster.ClusterName) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if of != nil && c.engagements[of.name] != of {
		return true // it goes with its own cluster
	}
	if c.engagements[until] != nil {
		c.queue.AddAfter(req, parkRetry)
		return true
	}
	return c.parked.add(req, until)
}

// unpark forgets a request that is tried, whatever for: should it still need a
// cluster, it is parked anew.
func (c *mcController[request]) unpark(req request) {
	c.mu.RLock()
	waits := c.parked.has(req)
	c.mu.RUnlock()
	if !waits {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.parked.remove(req)
}
