// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"slices"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

const (
	// answerWithin is how long a cluster may keep a place in the gate without
	// having answered.
	answerWithin = time.Second
	// overtakenBy is how many clusters may answer meanwhile, for each place of
	// the gate, before that time is over. On average one answers for each place
	// while another passes the gate, however fast the network is: a cluster that
	// hangs costs as much as two that are well.
	overtakenBy = 2
)

// urgency says who goes first where clusters wait for a place.
type urgency int

const (
	engaged  urgency = iota // it is in use already
	answered                // it has lost its place, and answers now
	untried                 // nothing is known of it
	failed                  // it could not be reached the last time
	urgencies
)

// gate bounds how many clusters connect and fill caches at the same time.
type gate struct {
	size  int // less than zero for no bound
	clock clock.WithDelayedExecution

	mu      sync.Mutex // guards what follows, and all places
	taken   int
	answers int                 // of all clusters so far
	asking  []*place            // places held by those that have not answered, in the order of entry
	waiting [urgencies][]*place // in the order of arrival
}

func newGate(size int, c clock.WithDelayedExecution) *gate {
	return &gate{size: size, clock: c}
}

// place is one in a gate, which may be lost on the way. The gate's lock guards
// it.
type place struct {
	gate    *gate
	held    bool
	waits   chan struct{} // closed when it is held; nil if nobody waits for it
	queued  func()        // called whenever it is to be waited for; may be nil
	timeout clock.Timer   // until the cluster has answered
	answers int           // the gate's, at the entry
}

// enter waits for a place. It is lost to clusters that answer unless it is
// confirmed in time. The error is that of the context.
func (g *gate) enter(ctx context.Context, u urgency) (*place, error) {
	return g.admit(ctx, u, nil)
}

// admit is enter with a function that is called when there is no free place, now
// or when the place is confirmed.
func (g *gate) admit(ctx context.Context, u urgency, queued func()) (*place, error) {
	p := &place{gate: g, queued: queued}
	if err := p.take(ctx, u); err != nil {
		return nil, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	p.answers = g.answers
	g.asking = append(g.asking, p)
	p.timeout = afterFunc(g.clock, answerWithin, p.expire)
	return p, nil
}

// confirm keeps the place, for its cluster has answered, or waits for another
// if it has been lost.
func (p *place) confirm(ctx context.Context) error {
	g := p.gate
	g.mu.Lock()
	p.answeredLocked()
	g.answers++
	for len(g.asking) > 0 && g.size > 0 && g.answers-g.asking[0].answers > overtakenBy*g.size {
		g.asking[0].leaveLocked()
	}
	held := p.held
	g.mu.Unlock()
	if held {
		return nil
	}
	return p.take(ctx, answered)
}

// expire gives the place up unless it is confirmed.
func (p *place) expire() {
	p.gate.mu.Lock()
	defer p.gate.mu.Unlock()
	if p.timeout != nil {
		p.leaveLocked()
	}
}

// leave gives the place up, if it is held. It is for whoever has taken it.
func (p *place) leave() {
	p.gate.mu.Lock()
	defer p.gate.mu.Unlock()
	p.leaveLocked()
}

// answeredLocked stops waiting for the cluster's answer.
func (p *place) answeredLocked() {
	if p.timeout == nil {
		return
	}
	p.timeout.Stop()
	p.timeout = nil
	p.gate.asking = without(p.gate.asking, p)
}

func (p *place) leaveLocked() {
	p.answeredLocked()
	if !p.held {
		return
	}
	p.held = false
	p.gate.taken--
	for u := range p.gate.waiting {
		if waiting := p.gate.waiting[u]; len(waiting) > 0 {
			waiting[0].holdLocked()
			p.gate.waiting[u] = waiting[1:]
			return
		}
	}
}

func (p *place) holdLocked() {
	p.gate.taken++
	p.held = true
	if p.waits != nil {
		close(p.waits)
		p.waits = nil
	}
}

func (p *place) take(ctx context.Context, u urgency) error {
	g := p.gate
	g.mu.Lock()
	if g.size < 0 || g.taken < g.size {
		p.holdLocked()
		g.mu.Unlock()
		return nil
	}
	taken := make(chan struct{})
	p.waits = taken
	g.waiting[u] = append(g.waiting[u], p)
	g.mu.Unlock()
	if p.queued != nil {
		p.queued()
	}
	select {
	case <-taken:
		return nil
	case <-ctx.Done():
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.waiting[u] = without(g.waiting[u], p)
	p.waits = nil
	p.leaveLocked() // it may have got one in that moment
	return context.Cause(ctx)
}

func without(places []*place, p *place) []*place {
	return slices.DeleteFunc(places, func(other *place) bool { return other == p })
}
