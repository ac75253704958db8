// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Since returns the writes to a resource after a revision, the revision up to
// which they are complete, and a channel that is closed at the resource's next
// write. It fails with ErrExpired if the history does not reach back that far.
// The events are shared and must not be changed.
func (s *Store) Since(resource schema.GroupResource, revision uint64) ([]Event, uint64, <-chan struct{}, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.table(resource)
	if revision < t.floor {
		return nil, s.revision, nil, ErrExpired
	}
	if t.changed == nil {
		t.changed = make(chan struct{})
	}
	i := t.after(revision)
	return t.events[i:len(t.events):len(t.events)], s.revision, t.changed, nil
}

// Compact drops all history. Earlier revisions can then be neither watched nor
// listed.
func (s *Store) Compact() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.compacted = s.revision
	for _, t := range s.tables {
		t.events = nil
		t.floor = s.revision
	}
}

// Reset drops all objects and history, and restarts the revisions.
func (s *Store) Reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.tables {
		if t.changed != nil {
			close(t.changed)
		}
	}
	s.revision, s.compacted = firstRevision, 0
	clear(s.tables)
}

// Snapshot is the content of a store at one time. It is immutable.
type Snapshot struct {
	revision uint64
	records  map[schema.GroupResource][]*Record
}

// Snapshot returns the present content, without history.
func (s *Store) Snapshot() *Snapshot {
	s.mu.RLock()
	defer s.mu.RUnlock()
	snapshot := &Snapshot{revision: s.revision, records: map[schema.GroupResource][]*Record{}}
	for resource, t := range s.tables {
		snapshot.records[resource] = slices.Clone(t.records)
	}
	return snapshot
}

// Restore replaces the content by that of a snapshot, and the revision by its own.
// There is no history.
func (s *Store) Restore(snapshot *Snapshot) {
	s.Reset()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.revision, s.compacted = snapshot.revision, snapshot.revision
	for resource, records := range snapshot.records {
		s.table(resource).records = slices.Clone(records)
	}
}

// append adds an event, drops the oldest beyond the limit, and wakes waiting
// readers.
func (t *table) append(event Event, limit int) {
	if len(t.events) >= limit+limit/4+1 {
		drop := len(t.events) - limit
		t.floor = t.events[drop-1].Object.Revision
		// A new array, because readers may still hold the old one.
		t.events = slices.Clone(t.events[drop:])
	}
	t.events = append(t.events, event)
	if t.changed != nil {
		close(t.changed)
		t.changed = nil
	}
}

// after returns the index of the first event that is newer than a revision.
func (t *table) after(revision uint64) int {
	i, _ := slices.BinarySearchFunc(t.events, revision+1, func(event Event, revision uint64) int {
		return cmp.Compare(event.Object.Revision, revision)
	})
	return i
}

// before returns the sorted records at a revision within the history.
func (t *table) before(revision uint64) []*Record {
	later := t.events[t.after(revision):]
	if len(later) == 0 {
		return slices.Clone(t.records)
	}
	records := make(map[string]*Record, len(t.records))
	for _, r := range t.records {
		records[r.Key()] = r
	}
	for _, event := range slices.Backward(later) {
		if event.Previous == nil {
			delete(records, event.Object.Key())
		} else {
			records[event.Object.Key()] = event.Previous
		}
	}
	return slices.SortedFunc(maps.Values(records), func(a, b *Record) int { return strings.Compare(a.Key(), b.Key()) })
}
