// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"context"

	"github.com/rollcall-dev/rollcall/pkg/mc/fleet/internal/timing"
)

// catchUp waits until the caches of a cluster that responds again are in step, but
// at most for ConnectTimeout.
type catchUp struct {
	cancel context.CancelFunc
	ended  chan struct{} // closed at the end
}

// endedIn returns a channel that is closed at the end, nil if there is no catchUp.
func (c *catchUp) endedIn() <-chan struct{} {
	if c == nil {
		return nil
	}
	return c.ended
}

// startCatchUp starts the requests of caches that wait. It reports whether the caches
// are in step already.
func (s *session) startCatchUp() bool {
	informers := s.cluster.connection.Informers()
	informers.Resume()
	if informers.InStep() {
		return true
	}
	ctx, cancel := timing.Within(s.worker.ctx, s.worker.Clock, s.worker.ConnectTimeout, "caches in step")
	c := &catchUp{cancel: cancel, ended: make(chan struct{})}
	s.catchUp = c
	go func() {
		defer close(c.ended)
		informers.Await(ctx)
	}()
	return false
}

// stopCatchUp ends the wait for the caches, if there is one.
func (s *session) stopCatchUp() {
	if c := s.catchUp; c != nil {
		s.catchUp = nil
		c.cancel()
		<-c.ended
	}
}

// caughtUp lets controllers use the cluster again.
func (s *session) caughtUp() {
	s.stopCatchUp()
	s.updateStatus()
	s.cluster.engagement.SetHealthy(true)
}
