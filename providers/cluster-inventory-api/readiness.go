// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package clusterinventoryapi

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/rollcall-dev/rollcall/pkg/inventory"
)

// askAgainAfter is the time between two calls of a custom Options.IsReady for a
// profile that is not ready.
const askAgainAfter = 10 * time.Second

// readiness keeps from a sink the profiles that are not ready. Its state outlives a
// run of the source.
type readiness struct {
	isReady func(ctx context.Context, profile *inventory.Profile) bool
	// once keeps profiles that have been ready until they are removed, and asks only
	// for new versions of the others.
	once bool

	mu      sync.Mutex // guards what follows and the use of the sink
	passed  map[inventory.Key]bool
	waiting map[inventory.Key]*inventory.Profile
}

// newReadiness returns the readiness of Options.IsReady.
func newReadiness(opts *Options) *readiness {
	r := &readiness{isReady: opts.IsReady, passed: map[inventory.Key]bool{}}
	switch {
	case opts.IsReady != nil:
	case len(opts.Selection.Health) > 0: // decides instead
		r.isReady = func(context.Context, *inventory.Profile) bool { return true }
	default:
		r.once = true
		r.isReady = func(_ context.Context, profile *inventory.Profile) bool {
			return meta.IsStatusConditionTrue(profile.Status.Conditions, inventory.ConditionControlPlaneHealthy)
		}
	}
	return r
}

// run runs the source with a sink that gets the profiles that are ready.
func (r *readiness) run(ctx context.Context, source inventory.Source, sink inventory.Sink) error {
	ctx, cancel := context.WithCancel(ctx)
	var asking sync.WaitGroup
	defer asking.Wait()
	defer cancel()
	r.waiting = map[inventory.Key]*inventory.Profile{}
	s := &readySink{Sink: sink, readiness: r, ctx: ctx}
	if !r.once {
		asking.Go(s.askAgain)
	}
	return source.Run(ctx, s)
}

// readySink is the sink of one run.
type readySink struct {
	inventory.Sink
	*readiness
	ctx context.Context // of the run
}

// askAgain asks for the waiting profiles until the run ends.
func (s *readySink) askAgain() {
	ticker := time.NewTicker(askAgainAfter)
	defer ticker.Stop()
	for {
		select {
		case <-s.ctx.Done():
			return
		case <-ticker.C:
			s.mu.Lock()
			for key, profile := range s.waiting {
				if s.ctx.Err() == nil && s.isReady(s.ctx, profile) {
					s.pass(key, profile)
				}
			}
			s.mu.Unlock()
		}
	}
}

// pass sends a profile that is ready. The caller holds the lock.
func (s *readySink) pass(key inventory.Key, profile *inventory.Profile) {
	delete(s.waiting, key)
	s.passed[key] = true
	s.Sink.Put(profile)
}

// Put implements inventory.Sink.
func (s *readySink) Put(profile *inventory.Profile) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := inventory.KeyOf(profile)
	if s.once && s.passed[key] || s.isReady(s.ctx, profile) {
		s.pass(key, profile)
		return
	}
	if s.waiting[key] == nil {
		log.FromContext(s.ctx).Info("Profile is not ready, not connecting its cluster", "profile", key, "health", inventory.HealthOf(profile).String())
	}
	s.waiting[key] = profile
	delete(s.passed, key)
	s.Sink.Remove(key)
}

// Remove implements inventory.Sink.
func (s *readySink) Remove(key inventory.Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.waiting, key)
	delete(s.passed, key)
	s.Sink.Remove(key)
}

// Synced implements inventory.Sink.
func (s *readySink) Synced() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Sink.Synced()
}
