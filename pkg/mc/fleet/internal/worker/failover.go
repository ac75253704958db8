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
