// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"github.com/rollcall-dev/rollcall/pkg/mc/fleet/internal/admission"
	"github.com/rollcall-dev/rollcall/pkg/mc/fleet/internal/identity"
)

// reconnect resolves the latest profile while the cluster stays engaged. Its
// goroutine sends one result, or none after it was canceled.
type reconnect struct {
	attempt  *attempt
	result   chan *reconnectResult // unbuffered: the receiver owns the connection
	canceled chan struct{}
	done     chan struct{}
}

type reconnectResult struct {
	connection Connection // nil if it is equal to the current one
	identity   identity.Identity
	err        error
}

// results returns the channel of the result, nil if there is no reconnect.
func (r *reconnect) results() <-chan *reconnectResult {
	if r == nil {
		return nil
	}
	return r.result
}

// startReconnect connects with the latest profile. It replaces a reconnect that is
// under way.
func (s *session) startReconnect() {
	s.cancelReconnect()
	s.retry = nil
	r := &reconnect{
		attempt:  s.worker.newAttempt("usable connection"),
		result:   make(chan *reconnectResult),
		canceled: make(chan struct{}),
		done:     make(chan struct{}),
	}
	s.reconnect, s.tried = r, accessKey(r.attempt.profile)
	verify := r.attempt.profile.UID != s.profileUID
	go func() {
		defer close(r.done)
		result := s.worker.connectAgain(r.attempt, s.cluster, verify)
		select {
		case r.result <- &result:
		case <-r.canceled:
			if result.connection != nil {
				result.connection.Release()
			}
		}
	}()
}

// cancelReconnect ends the reconnect that is under way, if there is one.
func (s *session) cancelReconnect() {
	r := s.reconnect
	if r == nil {
		return
	}
	s.reconnect = nil
	close(r.canceled)
	r.attempt.cancel(nil)
	<-r.done
	s.worker.endAttempt(r.attempt) // no goroutine uses its timer any more
}

// connectAgain connects an engaged cluster with the attempt's profile. It waits for
// a startup slot, since a change of credentials may concern all clusters, unless the
// cluster has one: its caches may be syncing with the credentials that changed. An
// equal connection is probed only if verify is set.
func (w *Worker) connectAgain(a *attempt, current *Cluster, verify bool) reconnectResult {
	if !current.starts.HasSlot() {
		var slot *admission.Slot
		if err := a.untimed(func() (err error) {
			slot, err = w.Limiter.Acquire(a.ctx, admission.Engaged, nil)
			return err
		}); err != nil {
			return reconnectResult{err: err}
		}
		defer slot.Release()
	}
	conn, err := w.Backend.Connect(a.ctx, a.profile)
	if err != nil {
		return reconnectResult{err: withReason(ResolveFailed, withCause(a.ctx, err))}
	}
	if fingerprint := conn.Fingerprint(); !verify && fingerprint != "" && fingerprint == current.connection.Fingerprint() {
		conn.Release()
		return reconnectResult{}
	}
	id, err := w.identify(a.ctx, a.profile, conn)
	if err != nil {
		conn.Release()
		return reconnectResult{err: err}
	}
	return reconnectResult{connection: conn, identity: id}
}
