// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
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

// parked has requests by the cluster whose engagement they wait for. The zero
// value is empty.
type parked[request comparable] struct {
	requests map[multicluster.ClusterName]map[request]struct{}
	count    int
}

func (p *parked[request]) add(req request, until multicluster.ClusterName) bool {
	if _, ok := p.requests[until][req]; ok {
		return true
	}
	if p.count == maxParked {
		return false
	}
	if p.requests == nil {
		p.requests = map[multicluster.ClusterName]map[request]struct{}{}
	}
	if p.requests[until] == nil {
		p.requests[until] = map[request]struct{}{}
	}
	p.requests[until][req] = struct{}{}
	p.count++
	return true
}

// take returns the requests that wait for the cluster and forgets them.
func (p *parked[request]) take(name multicluster.ClusterName) []request {
	waiting := p.requests[name]
	delete(p.requests, name)
	p.count -= len(waiting)
	requests := make([]request, 0, len(waiting))
	for req := range waiting {
		requests = append(requests, req)
	}
	return requests
}

// drop forgets the requests of a cluster that has left.
func (p *parked[request]) drop(of func(request) bool) {
	for until, waiting := range p.requests {
		for req := range waiting {
			if of(req) {
				delete(waiting, req)
				p.count--
			}
		}
		if len(waiting) == 0 {
			delete(p.requests, until)
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
