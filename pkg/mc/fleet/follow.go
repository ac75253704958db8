// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"errors"
	"time"

	"github.com/rollcall-dev/rollcall/pkg/inventory"
)

// pursuit is an attempt to find the way that the latest profile leads, while
// the cluster goes on as it is.
type pursuit struct {
	*attempt
	found     chan finding  // unbuffered: who takes a finding has it
	abandoned chan struct{} // closed if nobody will
	ended     chan struct{}
}

type finding struct {
	way *approach // nil if it is the one there
	err error
}

// result returns the channel that the finding comes to. It never does on nil.
func (p *pursuit) result() <-chan finding {
	if p == nil {
		return nil
	}
	return p.found
}

// follow sets out to make the latest profile the one by which the cluster is
// reached. What was under way to that end is given up.
func (s *service) follow() {
	s.abandon()
	s.retry = nil
	p := &pursuit{attempt: s.try(), found: make(chan finding), abandoned: make(chan struct{}), ended: make(chan struct{})}
	s.tried = heading(p.profile)
	s.pursuit = p
	current := s.member.way
	p.ask = p.profile.UID != s.confirmed
	go func() {
		defer close(p.ended)
		way, err := s.approachInTurn(p.attempt, current)
		select {
		case p.found <- finding{way, err}:
		case <-p.abandoned:
			way.release()
		}
	}()
}

// approachInTurn is approach with a place in the gate, while the cluster answers:
// a change of credentials may be one for all clusters. One that has a place
// waits for no other: it may be listed with the credentials that have changed.
func (s *service) approachInTurn(a *attempt, current *approach) (*approach, error) {
	if s.member.hasPlace() {
		return s.approach(a, current)
	}
	var p *place
	if err := a.untimed(func() (err error) {
		p, err = s.fleet.gate.enter(a, engaged)
		return err
	}); err != nil {
		return nil, err
	}
	defer p.leave()
	return s.approach(a, current)
}

// abandon gives up the pursuit under way, if there is one.
func (s *service) abandon() {
	p := s.pursuit
	if p == nil {
		return
	}
	s.pursuit = nil
	close(p.abandoned)
	s.end(p.attempt)
	<-p.ended
}

// take goes the way that has been found. The error is errOtherCluster where it
// leads elsewhere; any other failure leaves the cluster as it is, and is tried
// again later.
func (s *service) take(f finding) error {
	p := s.pursuit
	s.pursuit = nil
	s.end(p.attempt)
	switch {
	case errors.Is(f.err, errSuperseded):
		at := make(chan time.Time, 1)
		at <- time.Time{}
		s.retry = at
	case f.err != nil:
		delay := s.backoff.Step()
		s.accessErr = f.err
		s.show()
		s.log.Info("Cluster's new access cannot be used, keeping the one before", "error", f.err.Error(), "after", delay.Round(time.Millisecond).String())
		s.retry = s.fleet.options.Connection.Clock.After(delay)
		return s.stillRefused()
	case f.way == nil:
		if !s.member.adopt(inventory.ClusterID(p.profile)) {
			return errOtherCluster
		}
		s.accessErr = nil
		s.show()
		return s.stillRefused()
	case s.member.confirm(f.way):
		f.way.release()
		s.accessErr, s.refused, s.confirmed = nil, nil, p.profile.UID
		s.log.Info("Cluster's profile was created anew and leads to it as before")
		s.health.recovered() // it has just answered
	case !s.member.exchange(f.way):
		f.way.release()
		return errOtherCluster
	default:
		s.accessErr, s.refused, s.confirmed = nil, nil, p.profile.UID
		s.note(f.way)
		s.log.Info("Cluster's access was exchanged under it", "server", f.way.server, "provider", f.way.provider)
		s.health.recovered() // it has just answered
	}
	return nil
}

// stillRefused counts a probe's answer for which no other access was found.
func (s *service) stillRefused() error {
	err := s.refused
	if err == nil {
		return nil
	}
	s.refused = nil
	return s.health.failed(err)
}
