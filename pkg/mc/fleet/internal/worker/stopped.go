// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"context"
	"fmt"
	"sync"

	"github.com/rollcall-dev/rollcall/pkg/inventory"
	"github.com/rollcall-dev/rollcall/pkg/mc/fleet/internal/identity"
	"github.com/rollcall-dev/rollcall/pkg/mc/fleet/internal/timing"
)

// StoppedWorkers has the workers that were stopped and have not yet ended. A cluster
// that is added under another name waits for them: otherwise its objects would be
// reconciled under both names at once. The zero value is empty. Its methods may be
// called concurrently.
type StoppedWorkers struct {
	mu      sync.Mutex // guards workers
	workers map[*Worker]struct{}
}

func (s *StoppedWorkers) add(w *Worker) {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-w.done:
		return
	default:
	}
	if s.workers == nil {
		s.workers = map[*Worker]struct{}{}
	}
	s.workers[w] = struct{}{}
}

func (s *StoppedWorkers) remove(w *Worker) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.workers, w)
}

// removeEnded removes the worker if its Run has returned.
func (s *StoppedWorkers) removeEnded(w *Worker) {
	select {
	case <-w.done:
		s.remove(w)
	default:
	}
}

// other returns a worker that leaves the cluster which w has identified, nil if there
// is none.
func (s *StoppedWorkers) other(w *Worker) *Worker {
	s.mu.Lock()
	defer s.mu.Unlock()
	for other := range s.workers {
		if other != w && w.sameCluster(other) {
			return other
		}
	}
	return nil
}

// sameCluster reports whether both workers have the same cluster, or the same
// endpoint if their identities cannot be compared.
func (w *Worker) sameCluster(other *Worker) bool {
	id, server := w.identified()
	otherID, otherServer := other.identified()
	return id.Matches(otherID) || !id.Conflicts(otherID) && server != "" && server == otherServer
}

// identified returns the identity and the endpoint that the status shows.
func (w *Worker) identified() (id identity.Identity, server string) {
	status := w.Status()
	return identity.Identity{UID: status.UID, ClusterID: inventory.ClusterID(w.Profile())}, status.Server
}

// leaving returns a worker that is disengaging the cluster which w has identified, and
// a channel that is closed when it has. The worker is nil if there is none.
func (w *Worker) leaving() (other *Worker, ended <-chan struct{}) {
	if other := w.Stopped.other(w); other != nil {
		return other, other.done
	}
	return w.Claims.leaving(w)
}

// waitForOther waits while the cluster is being disengaged under another name, but
// not for longer than that may take.
func (w *Worker) waitForOther(ctx context.Context) error {
	other, ended := w.leaving()
	if other == nil {
		return nil
	}
	lastError := w.Status().LastError
	limit := w.ConnectTimeout + disengageGrace
	waiting, cancel := timing.Within(ctx, w.Clock, limit, "end of the engagement under another name")
	defer cancel()
	for ; other != nil; other, ended = w.leaving() {
		w.setWaiting(DuplicateCluster, fmt.Sprintf("the cluster is being disengaged under the name %q", other.name))
		select {
		case <-ended:
			w.Stopped.removeEnded(other)
		case <-waiting.Done():
			if ctx.Err() == nil {
				w.log.Error(nil, "Timed out waiting for the cluster to be disengaged under another name", "other", other.name, "duration", limit.String())
			}
			return context.Cause(ctx)
		}
	}
	w.setWaiting(CheckingIdentity, lastError)
	return nil
}
