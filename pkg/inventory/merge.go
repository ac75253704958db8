// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"context"
	"strconv"
	"strings"
	"sync"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/rollcall-dev/rollcall/pkg/inventory/internal/metadata"
)

// Merge returns a source of the profiles of all sources. Each source runs on its
// own and is restarted after a failure, as with Restart; until then its profiles
// stay as they are. The sink is synced once all sources have synced.
//
// If several sources have a profile with the same key, the profile of the source
// listed first is used, whichever arrived first. The others are logged and ignored;
// when it is removed, the next of them replaces it. Rename avoids duplicate keys.
// Profiles with different keys are all passed on, even with the same cluster name.
//
// The annotation AnnotationSource has the position of a profile's source, from 0. So
// the order of the sources should stay the same.
func Merge(sources ...Source) Source {
	return &merged{sources: sources}
}

// merged is the source of all profiles of its sources.
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

// Run returns nil when the context has ended and all sources have returned.
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
			_ = Restart(src).Run(ctx, &mergeSink{table: table, source: i}) // never fails
		})
	}
	running.Wait()
	<-ctx.Done()
	return nil
}

// mergeTable has the profiles of all sources.
type mergeTable struct {
	log     logr.Logger
	sources []Source

	mu       sync.Mutex // guards what follows; held during calls of sink, which return at once
	sink     Sink
	profiles map[Key][]*Profile // the profile of each source, or nil
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
		t.log.Info("Duplicate profile, using the one of the source listed first", "profile", key,
			"source", nameOf(t.sources[min(before, source)]), "ignored", nameOf(t.sources[max(before, source)]))
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

func (s *mergeSink) Put(profile *Profile) {
	if len(s.table.sources) > 1 {
		source := strconv.Itoa(s.source)
		if of := profile.Annotations[AnnotationSource]; of != "" {
			source += "/" + of
		}
		profile = metadata.WithAnnotation(profile, AnnotationSource, source)
	}
	s.table.put(s.source, profile)
}
func (s *mergeSink) Remove(key Key) { s.table.remove(s.source, key) }
func (s *mergeSink) Synced()        { s.table.synced() } // Restart calls it once
