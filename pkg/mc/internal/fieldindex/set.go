// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package fieldindex

import (
	"fmt"
	"sync"
)

// Set is a set of indexes, which many clusters may share. The zero value is empty.
// All methods may be called concurrently.
type Set struct {
	mu  sync.RWMutex // guards all
	all map[Key]Index
}

// Add adds an index. One that the set has already may be added again with the same
// function; another function for it is an error.
func (s *Set) Add(i Index) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if old, ok := s.all[i.Key()]; ok {
		if !SameCode(old.Extract, i.Extract) {
			return fmt.Errorf("field %q of %T is already indexed by another function", i.Field, i.Object)
		}
		return nil
	}
	if s.all == nil {
		s.all = map[Key]Index{}
	}
	s.all[i.Key()] = i
	return nil
}

func (s *Set) get(k Key) (Index, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	i, ok := s.all[k]
	return i, ok
}

func (s *Set) empty() bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return len(s.all) == 0
}
