// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"

	"k8s.io/utils/clock"

	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
)

var _ multicluster.StartLimiter = &member{}

// turn is a place in the gate that all who start something in one cluster at
// the same time have together: the first takes it, the last gives it back.
type turn struct {
	taken  chan struct{} // closed when there is a place, or err says why there is none
	err    error
	cancel context.CancelFunc // of who waits for the place

	// The member's lock guards what follows.
	sharers int
	place   *place
	limit   clock.Timer
}

// RequestStart implements multicluster.StartLimiter: it shares the place that
// the cluster has in the fleet's gate. Where it has none, Wait asks for one.
func (m *member) RequestStart() multicluster.StartRequest {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := &startRequest{member: m, turn: m.turn}
	if m.turn != nil {
		m.turn.sharers++
	}
	return r
}

// startRequest is a share in a turn. The member's lock guards turn and released.
type startRequest struct {
	member   *member
	turn     *turn // nil before Wait where there was none
	released bool
}

// Wait returns when the cluster has a place in the fleet's gate, and has shown
// that it answers. One that does not keeps no place meanwhile, and is an error
// after the time that a probe has. A place that is not given back within
// ConnectTimeout is lost to others.
func (r *startRequest) Wait(ctx context.Context) error {
	t := r.join()
	if t == nil {
		return errLeft
	}
	select {
	case <-t.taken:
		return t.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// join returns the turn that the request shares, nil if the cluster leaves or
// the request has been released.
func (r *startRequest) join() *turn {
	m := r.member
	m.mu.Lock()
	defer m.mu.Unlock()
	if r.turn == nil && !r.released {
		r.turn = m.joinTurnLocked()
	}
	return r.turn
}

// Release gives up the share.
func (r *startRequest) Release() {
	m := r.member
	m.mu.Lock()
	defer m.mu.Unlock()
	if r.turn != nil && !r.released {
		m.leaveTurnLocked(r.turn)
	}
	r.released = true
}

// joinTurnLocked returns the current turn, or a new one, which must be left. It
// is nil if the cluster leaves.
func (m *member) joinTurnLocked() *turn {
	if m.turn == nil {
		t := &turn{taken: make(chan struct{})}
		ctx, cancel := context.WithCancel(m.ctx)
		if !m.workLocked(func() { m.takeTurn(ctx, t) }) {
			cancel()
			return nil
		}
		t.cancel = cancel
		m.turn = t
	}
	m.turn.sharers++
	return m.turn
}

// hasPlace tells whether the current turn has its place.
func (m *member) hasPlace() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.turn != nil && m.turn.place != nil
}

// firstTurn makes the place, in which the cluster has been connected, a turn.
func (m *member) firstTurn(p *place) {
	m.turn = &turn{taken: make(chan struct{}), cancel: func() {}, sharers: 1, place: p}
	close(m.turn.taken)
}

// takeTurn waits for the turn's place, which the cluster keeps if it answers.
func (m *member) takeTurn(ctx context.Context, t *turn) {
	defer close(t.taken)
	p, err := m.fleet.gate.enter(ctx, untried)
	if err == nil {
		if err = m.answers(ctx); err == nil {
			err = p.confirm(ctx)
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if err == nil {
		err = context.Cause(ctx) // who wanted it may have gone
	}
	t.place, t.err = p, err
	if err != nil {
		m.endTurnLocked(t)
		return
	}
	m.boundTurnLocked(t)
}

// boundTurnLocked has the place lost when it has not been given back in time.
func (m *member) boundTurnLocked(t *turn) {
	t.limit = afterFunc(m.fleet.options.Connection.Clock, m.fleet.options.Connection.ConnectTimeout, func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.endTurnLocked(t)
	})
}

// leaveTurn gives up one share of it.
func (m *member) leaveTurn(t *turn) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.leaveTurnLocked(t)
}

func (m *member) leaveTurnLocked(t *turn) {
	t.sharers--
	if t.sharers == 0 {
		m.endTurnLocked(t)
	}
}

// endTurnLocked gives the place up, whoever shares it still. Whoever comes now
// has another turn.
func (m *member) endTurnLocked(t *turn) {
	if m.turn == t {
		m.turn = nil
	}
	t.cancel()
	if t.limit != nil {
		t.limit.Stop()
	}
	if t.place != nil {
		t.place.leave()
	}
}

// answers asks the cluster who it is, if it can be asked. One that has too many
// requests has answered.
func (m *member) answers(ctx context.Context) error {
	identify := m.identify
	if t := m.transport.current.Load(); t != nil {
		identify = t.identify
	}
	if identify == nil {
		return nil
	}
	ctx, cancel := within(ctx, m.fleet.options.Connection.Clock, m.fleet.options.Connection.Probe.Timeout, "answer")
	defer cancel()
	if _, err := identify(ctx, m.profile.Load()); err != nil && !isBusy(err) {
		return explain(ctx, err)
	}
	return nil
}
