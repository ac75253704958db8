// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/rollcall-dev/rollcall/pkg/inventory"
	"github.com/rollcall-dev/rollcall/pkg/mc/fleet/internal/worker"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
)

// sink is the fleet's inventory.Sink: it starts and stops the workers of profiles.
// It is used from one goroutine at a time.
type sink struct {
	ctx     context.Context // ends when the fleet stops
	fleet   *Fleet
	options *worker.Options

	entries map[inventory.Key]*entry
	// byName has the entries of each cluster name. The first has the worker. The
	// others are duplicates, in the order of inventory.ComparePrecedence.
	byName  map[multicluster.ClusterName][]*entry
	running sync.WaitGroup
}

type entry struct {
	name    multicluster.ClusterName
	profile *inventory.Profile
	worker  *worker.Worker // nil for a duplicate
	since   time.Time
}

func newSink(ctx context.Context, f *Fleet, options *worker.Options) *sink {
	return &sink{
		ctx: ctx, fleet: f, options: options,
		entries: map[inventory.Key]*entry{},
		byName:  map[multicluster.ClusterName][]*entry{},
	}
}

// Put implements inventory.Sink.
func (s *sink) Put(profile *inventory.Profile) {
	key := inventory.KeyOf(profile)
	if !s.fleet.options.IsReady(profile) {
		s.Remove(key)
		return
	}
	name := s.fleet.options.ClusterName(profile)
	if name.Empty() {
		log.FromContext(s.ctx).Error(nil, "Options.ClusterName returned no name for the profile, ignoring the profile", "profile", key)
		s.Remove(key)
		return
	}
	e := s.entries[key]
	switch {
	case e == nil:
		s.add(key, &entry{name: name, profile: profile, since: s.options.Clock.Now()})
	case e.name != name:
		s.Remove(key)
		s.add(key, &entry{name: name, profile: profile, since: s.options.Clock.Now()})
	case e.worker != nil:
		e.profile = profile
		e.worker.Update(profile)
	default:
		e.profile = profile
		s.sortDuplicates(name)
	}
}

func (s *sink) add(key inventory.Key, e *entry) {
	s.entries[key] = e
	s.byName[e.name] = append(s.byName[e.name], e)
	if first := s.byName[e.name][0]; first != e {
		log.FromContext(s.ctx).Error(nil, "Duplicate cluster name, ignoring profile until the other is removed",
			"cluster", e.name, "profile", key, "other", inventory.KeyOf(first.profile))
		s.sortDuplicates(e.name)
		return
	}
	s.run(key, e)
}

// Remove implements inventory.Sink.
func (s *sink) Remove(key inventory.Key) {
	e := s.entries[key]
	if e == nil {
		return
	}
	delete(s.entries, key)
	remaining := slices.DeleteFunc(s.byName[e.name], func(other *entry) bool { return other == e })
	s.byName[e.name] = remaining
	if len(remaining) == 0 {
		delete(s.byName, e.name)
	}
	s.fleet.mu.Lock()
	delete(s.fleet.byProfile, key)
	delete(s.fleet.duplicates, key)
	s.fleet.mu.Unlock()
	s.showDuplicates(e.name)
	if e.worker == nil {
		return
	}
	e.worker.Stop()
	if len(remaining) > 0 {
		s.run(inventory.KeyOf(remaining[0].profile), remaining[0])
	}
}

// Synced implements inventory.Sink.
func (s *sink) Synced() {
	s.fleet.synced.Store(true)
	log.FromContext(s.ctx).Info("Inventory listed", "profiles", len(s.entries))
}

// run starts a worker, which waits until the previous one of the same name has
// returned.
func (s *sink) run(key inventory.Key, e *entry) {
	e.worker = worker.New(s.ctx, s.options, e.name, e.profile)
	var previous *worker.Worker
	if old, ok := s.fleet.workers.Swap(e.name, e.worker); ok {
		previous = old.(*worker.Worker)
	}
	s.fleet.mu.Lock()
	s.fleet.byProfile[key] = e.worker
	s.fleet.mu.Unlock()
	s.running.Go(func() {
		defer s.fleet.workers.CompareAndDelete(e.name, e.worker)
		e.worker.Run(previous)
	})
}

// wait returns when all workers have returned.
func (s *sink) wait() {
	s.running.Wait()
	s.fleet.mu.Lock()
	defer s.fleet.mu.Unlock()
	clear(s.fleet.byProfile)
	clear(s.fleet.duplicates)
}

// sortDuplicates sorts the duplicates of a name by precedence.
func (s *sink) sortDuplicates(name multicluster.ClusterName) {
	slices.SortFunc(s.byName[name][1:], func(a, b *entry) int { return inventory.ComparePrecedence(a.profile, b.profile) })
	s.showDuplicates(name)
}

// showDuplicates shows the duplicates of a name in the status.
func (s *sink) showDuplicates(name multicluster.ClusterName) {
	s.fleet.mu.Lock()
	defer s.fleet.mu.Unlock()
	for i, e := range s.byName[name] {
		key := inventory.KeyOf(e.profile)
		if i == 0 {
			delete(s.fleet.duplicates, key)
			continue
		}
		status := ClusterStatus{
			Name: name, Profile: key, State: Pending, Reason: DuplicateName, Since: e.since,
			LastError: fmt.Sprintf("profile %s has the same cluster name; waiting until it is removed", inventory.KeyOf(s.byName[name][0].profile)),
		}
		status.setProfile(e.profile)
		s.fleet.duplicates[key] = status
	}
}
