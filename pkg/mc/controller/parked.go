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
	// maxParked bounds the number of requests that a controller parks. Further
	// ones are retried after a delay instead.
	maxParked = 10_000

	// parkRetry is the delay before the retry of a request whose cluster was
	// engaged just before it was parked.
	parkRetry = time.Second
)

// parked is a set of requests that wait for a cluster to be engaged. The zero
// value is empty.
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

// take removes and returns the requests that wait for the cluster.
func (p *parked[request]) take(name multicluster.ClusterName) []request {
	requests := slices.Collect(maps.Keys(p.requests[name]))
	for _, req := range requests {
		p.remove(req)
	}
	return requests
}

// drop removes the requests that the function is true for.
func (p *parked[request]) drop(of func(request) bool) {
	for req := range p.until {
		if of(req) {
			p.remove(req)
		}
	}
}

// park keeps a request until the cluster is engaged with the controller. It
// returns false if too many are parked. The engagement is that of the request's
// own cluster, nil if there is none.
func (c *mcController[request]) park(req request, of *engagement[request], until multicluster.ClusterName) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if of != nil && c.engagements[of.name] != of {
		return true // dropped with its own cluster
	}
	if c.engagements[until] != nil {
		c.queue.AddAfter(req, parkRetry)
		return true
	}
	return c.parked.add(req, until)
}

// unpark removes a request that a worker has got, for whatever reason, from those
// that wait. It is added again if it still needs a cluster or a fresh cache.
func (c *mcController[request]) unpark(req request) {
	c.mu.RLock()
	waits := c.parked.has(req) || c.waiting.has(req)
	c.mu.RUnlock()
	if !waits {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.parked.remove(req)
	c.waiting.remove(req)
}
