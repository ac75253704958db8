// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package worker

import "github.com/rollcall-dev/rollcall/pkg/inventory"

// failOver connects with another profile of the cluster. It reports false if all have
// been tried.
func (s *session) failOver() bool {
	if !s.worker.tryNext() {
		return false
	}
	s.worker.log.Info("Trying another profile of the cluster", "profile", inventory.KeyOf(s.worker.Profile()))
	s.startReconnect()
	return true
}

// endFailover goes on with the profile that the connection is made of, since the
// cluster has responded.
func (s *session) endFailover() {
	s.worker.tried = nil
	source, inUse := s.sourceInUse()
	if !inUse || s.worker.source.Load() == source || !s.worker.Claims.use(s.worker, source) {
		return
	}
	s.cancelReconnect()
	s.retry, s.tried = nil, accessKey(s.worker.Profile())
	if s.accessErr != nil { // it has another access, which could not be used
		s.startReconnect()
	}
}

// tryOwnLater makes the session try the worker's own profile again after a while, if
// it uses another one: the own one may lead to another cluster, which was not known.
func (s *session) tryOwnLater() {
	if s.worker.source.Load() != nil {
		s.retry = s.worker.Clock.After(s.worker.MaxBackoff)
	}
}

// retryDue connects again, with the worker's own profile if the cluster responds.
func (s *session) retryDue() {
	if !s.health.degraded() {
		s.worker.Claims.use(s.worker, nil)
	}
	s.startReconnect()
}

// backToSourceInUse goes on with another profile than the worker's own, which does
// not work. It reports false if the own one is in use.
func (s *session) backToSourceInUse() bool {
	source, inUse := s.sourceInUse()
	if source == nil || !inUse || s.health.degraded() || !s.worker.Claims.use(s.worker, source) {
		return false
	}
	s.tried = accessKey(s.worker.Profile())
	s.tryOwnLater()
	return true
}

// sourceInUse returns whose profile the connection is made of, nil for the worker's
// own, and false if that was removed.
func (s *session) sourceInUse() (*Worker, bool) {
	if inventory.KeyOf(s.worker.Own()) == s.profileKey {
		return nil, true
	}
	for _, other := range s.worker.Claims.alternates(s.worker) {
		if inventory.KeyOf(other.Own()) == s.profileKey {
			return other, true
		}
	}
	return nil, false
}
