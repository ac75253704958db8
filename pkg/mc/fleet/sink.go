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
type sink struct {
	ctx     context.Context // ends when the fleet stops
	fleet   *Fleet
	options *worker.Options

	mu      sync.Mutex // guards what follows; not held while workers do anything
	entries map[inventory.Key]*entry
	// byName has the entries of each cluster name. The first has the worker of the
	// cluster. The others, in the order of inventory.ComparePrecedence, have a standby
	// worker if they are of the same cluster, else they are duplicates without one.
	byName  map[multicluster.ClusterName][]*entry
	running sync.WaitGroup
}

type entry struct {
	wanted  multicluster.ClusterName // that of the profile
	name    multicluster.ClusterName // may be that of another profile of the cluster, which was removed
	profile *inventory.Profile
	worker  *worker.Worker // nil for a duplicate name
	since   time.Time
}

func newSink(ctx context.Context, f *Fleet, options *worker.Options) *sink {
	s := &sink{
		ctx: ctx, fleet: f, options: options,
		entries: map[inventory.Key]*entry{},
		byName:  map[multicluster.ClusterName][]*entry{},
	}
	options.IdentityChanged = s.identityChanged
	return s
}

// Put implements inventory.Sink.
func (s *sink) Put(profile *inventory.Profile) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := inventory.KeyOf(profile)
	if !s.fleet.options.IsReady(profile) {
		s.remove(key)
		return
	}
	name := s.fleet.options.ClusterName(profile)
	if name.Empty() {
		log.FromContext(s.ctx).Error(nil, "Options.ClusterName returned no name for the profile, ignoring the profile", "profile", key)
		s.remove(key)
		return
	}
	e := s.entries[key]
	if e != nil && e.wanted != name {
		s.remove(key)
		e = nil
	}
	if e == nil {
		e = &entry{wanted: name, name: name, profile: profile, since: s.options.Clock.Now()}
		s.entries[key] = e
		s.add(key, e)
		return
	}
	e.profile = profile
	if e.worker != nil {
		e.worker.Update(profile)
	}
	s.place(key, e)
}

func (s *sink) add(key inventory.Key, e *entry) {
	s.byName[e.name] = append(s.byName[e.name], e)
	s.place(key, e)
}

// place runs the worker that the entry should have.
func (s *sink) place(key inventory.Key, e *entry) {
	first := s.byName[e.name][0]
	switch {
	case first == e:
		if e.worker == nil {
			s.run(key, e)
		}
		s.placeOthers(e.name)
		return
	case s.sameCluster(first, e) && e.worker == nil:
		s.runStandby(key, e)
	case !s.sameCluster(first, e):
		if e.worker != nil {
			s.stopStandby(key, e)
		}
		if !s.isShown(key) {
			log.FromContext(s.ctx).Error(nil, "Duplicate cluster name, ignoring profile until the other is removed",
				"cluster", e.name, "profile", key, "other", inventory.KeyOf(first.profile))
		}
	}
	s.sortDuplicates(e.name)
}

// placeOthers runs the workers that the entries behind the first should have.
func (s *sink) placeOthers(name multicluster.ClusterName) {
	for _, other := range slices.Clone(s.byName[name][1:]) { // place sorts them
		s.place(inventory.KeyOf(other.profile), other)
	}
}

// sameCluster reports whether both profiles are believed to be of one cluster.
func (s *sink) sameCluster(a, b *entry) bool {
	return s.options.Claims.Believes(a.profile, b.profile)
}

// Remove implements inventory.Sink.
func (s *sink) Remove(key inventory.Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.remove(key)
}

func (s *sink) remove(key inventory.Key) {
	e := s.entries[key]
	if e == nil {
		return
	}
	delete(s.entries, key)
	isFirst := s.byName[e.name][0] == e
	s.drop(e)
	s.forget(key)
	switch {
	case e.worker == nil:
	case !isFirst:
		s.stopStandby(key, e)
	case s.handOver(e):
		return
	default:
		e.worker.Stop()
		s.runNext(e.name)
	}
	s.showDuplicates(e.name)
}

// drop removes an entry from those of its name.
func (s *sink) drop(e *entry) {
	s.byName[e.name] = slices.DeleteFunc(s.byName[e.name], func(other *entry) bool { return other == e })
	if len(s.byName[e.name]) == 0 {
		delete(s.byName, e.name)
	}
}

// forget removes what the fleet shows of a profile.
func (s *sink) forget(key inventory.Key) {
	s.fleet.mu.Lock()
	defer s.fleet.mu.Unlock()
	delete(s.fleet.byProfile, key)
	delete(s.fleet.duplicates, key)
	delete(s.fleet.standby, key)
}

// handOver gives the worker of an entry that was removed, and with it the cluster and
// its name, to another profile of the cluster. It reports false if there is none.
func (s *sink) handOver(e *entry) bool {
	successor := e.worker.Successor()
	if successor == nil {
		return false
	}
	key := inventory.KeyOf(successor.Own())
	next := s.entries[key]
	if next == nil || next.worker != successor {
		return false
	}
	wasFirst := s.byName[next.name][0] == next
	s.drop(next)
	left := next.name
	next.name, next.worker = e.name, e.worker
	s.byName[e.name] = slices.Insert(s.byName[e.name], 0, next)
	e.worker.Update(next.profile)
	successor.Stop()
	s.forget(key)
	s.fleet.mu.Lock()
	s.fleet.byProfile[key] = e.worker
	s.fleet.mu.Unlock()
	if wasFirst && left != e.name {
		s.runNext(left)
	}
	s.showDuplicates(left)
	s.showDuplicates(e.name)
	log.FromContext(s.ctx).Info("Profile removed, its cluster keeps its name and goes on with another profile",
		"cluster", e.name, "profile", inventory.KeyOf(e.profile), "other", key)
	return true
}

// runNext runs the worker of a name that has become free.
func (s *sink) runNext(name multicluster.ClusterName) {
	if len(s.byName[name]) == 0 {
		return
	}
	next := s.byName[name][0]
	key := inventory.KeyOf(next.profile)
	if next.worker != nil {
		s.stopStandby(key, next)
	}
	s.run(key, next)
	s.placeOthers(name)
}

// Synced implements inventory.Sink.
func (s *sink) Synced() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fleet.synced.Store(true)
	log.FromContext(s.ctx).Info("Inventory listed", "profiles", len(s.entries))
}

// identityChanged gives a profile its own name, if it has that of another one of the
// cluster that it was of.
func (s *sink) identityChanged(w *worker.Worker) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := inventory.KeyOf(w.Own())
	e := s.entries[key]
	if e == nil || e.worker != w || e.name == e.wanted {
		return
	}
	w.Stop()
	left := e.name
	s.drop(e)
	s.forget(key)
	e.name, e.worker = e.wanted, nil
	s.runNext(left)
	s.showDuplicates(left)
	s.add(key, e)
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
	name, w := e.name, e.worker // those of the entry may change
	s.running.Go(func() {
		defer s.fleet.workers.CompareAndDelete(name, w)
		w.Run(previous)
	})
}

// runStandby starts a worker for another profile of the cluster that has the name.
func (s *sink) runStandby(key inventory.Key, e *entry) {
	w := worker.NewStandby(s.ctx, s.options, e.name, e.profile)
	e.worker = w
	s.fleet.mu.Lock()
	s.fleet.byProfile[key], s.fleet.standby[key] = w, w
	s.fleet.mu.Unlock()
	s.running.Go(func() { w.Run(nil) })
}

func (s *sink) stopStandby(key inventory.Key, e *entry) {
	e.worker.Stop()
	e.worker = nil
	s.forget(key)
}

func (s *sink) isShown(key inventory.Key) bool {
	s.fleet.mu.Lock()
	defer s.fleet.mu.Unlock()
	_, shown := s.fleet.duplicates[key]
	return shown
}

// wait returns when all workers have returned.
func (s *sink) wait() {
	s.running.Wait()
	s.fleet.mu.Lock()
	defer s.fleet.mu.Unlock()
	clear(s.fleet.byProfile)
	clear(s.fleet.duplicates)
	clear(s.fleet.standby)
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
		if i == 0 || e.worker != nil {
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
