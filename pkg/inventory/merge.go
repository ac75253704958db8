// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"context"
	"strings"
	"sync"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// Merge returns a source of the profiles of all sources. Each source runs by
// itself and is run again when it fails, as with Restart; while it is out, its
// profiles stay as they were. The sink hears Synced once all sources have
// synced.
//
// Where profiles of several sources have the same key, that of the source
// named first is used, whichever came first in time. The others are hidden,
// which is logged, and the next of them takes over when it goes. Rename gives
// the profiles of a source keys of their own. Profiles of different keys are all
// handed on, also where they come to the same cluster name.
func Merge(sources ...Source) Source {
	return &merged{sources: sources}
}

type merged struct {
	sources []Source
}

func (m *merged) String() string {
	names := make([]string, len(m.sources))
	for i, src := range m.sources {
		names[i] = nameOf(src)
	}
	return strings.Join(names, ", ")
}

// Run returns nil when the context has ended and all sources with it.
func (m *merged) Run(ctx context.Context, sink Sink) error {
	table := &mergeTable{
		log: log.FromContext(ctx), sources: m.sources, sink: sink,
		profiles: map[Key][]*Profile{}, unsynced: len(m.sources),
	}
	if len(m.sources) == 0 {
		sink.Synced()
	}
	var running sync.WaitGroup
	for i, src := range m.sources {
		running.Go(func() {
			ctx := log.IntoContext(ctx, log.FromContext(ctx).WithValues("source", nameOf(src)))
			// Its only error is that of a context that has ended.
			_ = Restart(src).Run(ctx, &mergeSink{table: table, source: i})
		})
	}
	running.Wait()
	<-ctx.Done()
	return nil
}

// mergeTable has what all sources have told.
type mergeTable struct {
	log     logr.Logger
	sources []Source

	mu   sync.Mutex // guards what follows; held during calls of sink, which return at once
	sink Sink
	// profiles has, for each key, the profile of each source, or nil.
	profiles map[Key][]*Profile
	unsynced int
}

// used returns the first source with a profile of the key.
func (t *mergeTable) used(key Key) (source int, ok bool) {
	for i, profile := range t.profiles[key] {
		if profile != nil {
			return i, true
		}
	}
	return 0, false
}

func (t *mergeTable) put(source int, profile *Profile) {
	t.mu.Lock()
	defer t.mu.Unlock()
	key := KeyOf(profile)
	before, shared := t.used(key)
	if !shared {
		t.profiles[key] = make([]*Profile, len(t.sources))
	}
	added := t.profiles[key][source] == nil
	t.profiles[key][source] = profile
	if added && shared {
		first, hidden := min(before, source), max(before, source)
		t.log.Info("Two sources have a profile of the same key, that of the first source is used",
			"profile", key, "source", nameOf(t.sources[first]), "other", nameOf(t.sources[hidden]))
	}
	if used, _ := t.used(key); used == source {
		t.sink.Put(profile)
	}
}

func (t *mergeTable) remove(source int, key Key) {
	t.mu.Lock()
	defer t.mu.Unlock()
	profiles := t.profiles[key]
	if profiles == nil || profiles[source] == nil {
		return
	}
	before, _ := t.used(key)
	profiles[source] = nil
	next, left := t.used(key)
	switch {
	case !left:
		delete(t.profiles, key)
		t.sink.Remove(key)
	case before == source:
		t.sink.Put(profiles[next])
	}
}

func (t *mergeTable) synced() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.unsynced--
	if t.unsynced == 0 {
		t.sink.Synced()
	}
}

// mergeSink is the sink of one source.
type mergeSink struct {
	table  *mergeTable
	source int
}

func (s *mergeSink) Put(profile *Profile) { s.table.put(s.source, profile) }
func (s *mergeSink) Remove(key Key)       { s.table.remove(s.source, key) }
func (s *mergeSink) Synced()              { s.table.synced() } // once: Restart sees to it
