// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Package store keeps the objects of one API server in memory. Every write has
// the next revision, and each resource keeps its latest writes for watches.
//
// Objects are held as JSON and never changed once stored, so that readers,
// watchers and history share the same bytes. A watcher is a reader of a
// resource's history with its own cursor: writers never wait for it, and if it
// falls behind the history, it gets [ErrExpired].
package store

import (
	"errors"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	// ErrConflict means that the object has changed since the caller read
	// it. The caller reads it again.
	ErrConflict = errors.New("object changed in the meantime")
	// ErrExpired means that history no longer reaches back to a revision.
	ErrExpired = errors.New("revision is no longer in history")
	// ErrFuture means that a revision has not been written yet.
	ErrFuture = errors.New("revision is in the future")
)

// An Event is one write.
type Event struct {
	// Object is the new state; of a deletion, the last state with the
	// revision of the deletion.
	Object  *Record
	Deleted bool
	// Previous is nil for a new object.
	Previous *Record
}

// Store holds the objects of one API server. All methods may be called
// concurrently.
type Store struct {
	history int

	mu sync.RWMutex
	// Guarded by mu.
	revision  uint64
	compacted uint64
	tables    map[schema.GroupResource]*table
}

// table holds the objects of one resource. It is guarded by the store's lock.
type table struct {
	records []*Record // sorted by key
	events  []Event   // oldest first; shared with readers, so never overwritten
	floor   uint64    // events up to this revision are dropped
	changed chan struct{}
}

// firstRevision is the revision of an empty store. It is not zero, which means
// any revision in the API.
const firstRevision = 1

// New returns an empty store. Each resource keeps its latest history writes.
func New(history int) *Store {
	return &Store{history: history, revision: firstRevision, tables: map[schema.GroupResource]*table{}}
}

// Revision returns the revision of the latest write to any resource.
func (s *Store) Revision() uint64 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.revision
}

// Get returns an object, or nil if there is none.
func (s *Store) Get(resource schema.GroupResource, namespace, name string) *Record {
	s.mu.RLock()
	defer s.mu.RUnlock()
	t := s.tables[resource]
	if t == nil {
		return nil
	}
	if i, found := t.find(Key(namespace, name)); found {
		return t.records[i]
	}
	return nil
}

// List returns the objects of a namespace, or of all if it is empty, sorted by
// key, and the revision of the list.
func (s *Store) List(resource schema.GroupResource, namespace string) ([]*Record, uint64) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	t := s.tables[resource]
	if t == nil {
		return nil, s.revision
	}
	return slices.Clone(inNamespace(t.records, namespace)), s.revision
}

// ListAt is List at an earlier revision.
func (s *Store) ListAt(resource schema.GroupResource, namespace string, revision uint64) ([]*Record, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if revision > s.revision {
		return nil, ErrFuture
	}
	t := s.tables[resource]
	if t == nil {
		if revision < s.compacted {
			return nil, ErrExpired
		}
		return nil, nil
	}
	if revision < t.floor {
		return nil, ErrExpired
	}
	return inNamespace(t.before(revision), namespace), nil
}

// Put writes an object. Base is the record that the caller has read, or nil; the
// write fails with ErrConflict if it is no longer the latest.
func (s *Store) Put(resource schema.GroupResource, base *Record, draft *Draft) (*Record, error) {
	return s.commit(resource, base, draft, false)
}

// Delete removes an object, whose last state is draft. It fails with ErrConflict
// if base is no longer the latest.
func (s *Store) Delete(resource schema.GroupResource, base *Record, draft *Draft) (*Record, error) {
	return s.commit(resource, base, draft, true)
}

func (s *Store) commit(resource schema.GroupResource, base *Record, draft *Draft, remove bool) (*Record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.table(resource)
	i, found := t.find(draft.record.Key())
	var current *Record
	if found {
		current = t.records[i]
	}
	if current != base {
		return nil, ErrConflict
	}
	s.revision++
	record := draft.Preview(s.revision)
	switch {
	case remove:
		t.records = slices.Delete(t.records, i, i+1)
	case found:
		t.records[i] = record
	default:
		t.records = slices.Insert(t.records, i, record)
	}
	t.append(Event{Object: record, Deleted: remove, Previous: current}, s.history)
	return record, nil
}

// Empty reports whether a namespace holds no object of any resource.
func (s *Store) Empty(namespace string) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, t := range s.tables {
		if len(inNamespace(t.records, namespace)) > 0 {
			return false
		}
	}
	return true
}

// Resources returns the resources that have been written to.
func (s *Store) Resources() []schema.GroupResource {
	s.mu.RLock()
	defer s.mu.RUnlock()
	out := make([]schema.GroupResource, 0, len(s.tables))
	for r := range s.tables {
		out = append(out, r)
	}
	slices.SortFunc(out, func(a, b schema.GroupResource) int { return strings.Compare(a.String(), b.String()) })
	return out
}

// table returns the table of a resource, which it creates if needed. The caller
// holds the lock.
func (s *Store) table(resource schema.GroupResource) *table {
	t := s.tables[resource]
	if t == nil {
		t = &table{floor: s.compacted}
		s.tables[resource] = t
	}
	return t
}

func (t *table) find(key string) (int, bool) {
	return slices.BinarySearchFunc(t.records, key, func(r *Record, key string) int {
		return strings.Compare(r.Key(), key)
	})
}

// inNamespace returns the records of a namespace from sorted records.
func inNamespace(records []*Record, namespace string) []*Record {
	if namespace == "" {
		return records
	}
	from, _ := slices.BinarySearchFunc(records, namespace+"/", func(r *Record, key string) int {
		return strings.Compare(r.Key(), key)
	})
	to := from
	for to < len(records) && records[to].Namespace == namespace {
		to++
	}
	return records[from:to]
}
