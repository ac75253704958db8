// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"sync"
	"time"
)

// answerWithin is how long a cluster may keep a place in the gate without
// having answered.
const answerWithin = time.Second

// gate bounds how many clusters connect and fill caches at the same time.
type gate struct {
	places chan struct{} // holds a token for each place taken; nil for no bound
}

func newGate(places int) *gate {
	if places < 0 {
		return &gate{}
	}
	return &gate{places: make(chan struct{}, places)}
}

// place is one in a gate, which may be lost on the way.
type place struct {
	gate *gate

	mu        sync.Mutex // guards what follows
	held      bool
	confirmed bool
	timeout   *time.Timer
}

// enter waits for a place. It is lost after answerWithin unless confirmed. The
// error is that of the context.
func (g *gate) enter(ctx context.Context) (*place, error) {
	p := &place{gate: g}
	if err := p.take(ctx); err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.timeout = time.AfterFunc(answerWithin, p.expire)
	return p, nil
}

// confirm keeps the place, or waits for another if it has been lost.
func (p *place) confirm(ctx context.Context) error {
	p.mu.Lock()
	p.timeout.Stop()
	held := p.held
	p.confirmed = true
	p.mu.Unlock()
	if held {
		return nil
	}
	return p.take(ctx)
}

// expire gives the place up unless it is confirmed.
func (p *place) expire() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.confirmed {
		p.leaveLocked()
	}
}

// leave gives the place up, if it is held.
func (p *place) leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.timeout != nil {
		p.timeout.Stop()
	}
	p.leaveLocked()
}

func (p *place) leaveLocked() {
	if p.held && p.gate.places != nil {
		<-p.gate.places
	}
	p.held = false
}

func (p *place) take(ctx context.Context) error {
	if p.gate.places != nil {
		select {
		case p.gate.places <- struct{}{}:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held = true
	return nil
}
