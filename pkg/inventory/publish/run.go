// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"context"
	"slices"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/rollcall-dev/rollcall/pkg/inventory"
)

// run is one Run of a publisher: what the source and the hub have, and a worker for
// each name of a profile in the source, or of an own profile in the hub.
type run struct {
	ctx       context.Context // of Run
	publisher *Publisher
	options   *Options
	writer    *writer
	prober    *prober
	once      bool           // no worker is started by a change
	running   sync.WaitGroup // workers

	mu      sync.Mutex // guards what follows
	table   table
	workers map[string]*worker

	hubMu      sync.Mutex // guards hubFailing
	hubFailing bool       // requests fail before a response; logged
}

func newRun(ctx context.Context, p *Publisher, w *writer) *run {
	return &run{
		ctx: ctx, publisher: p, options: &p.options, writer: w, prober: newProber(&p.options),
		table: newTable(&p.options), workers: map[string]*worker{},
	}
}

// wait returns when all workers and probes have returned.
func (r *run) wait() {
	r.running.Wait()
	r.prober.running.Wait()
}

// changed wakes the worker of the name, or starts it if there is something to do. The
// caller holds the lock.
func (r *run) changed(name string) {
	if w := r.workers[name]; w != nil {
		w.notify()
		return
	}
	if r.once || r.ctx.Err() != nil || !r.table.concerns(name) {
		return
	}
	w := newWorker(r, name)
	r.workers[name] = w
	r.running.Go(w.run)
}

// leave ends the worker if there is nothing left to do.
func (r *run) leave(w *worker) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.table.concerns(w.name) {
		return false
	}
	delete(r.workers, w.name)
	return true
}

func (r *run) change(f func(*table) []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, name := range f(&r.table) {
		r.changed(name)
	}
}

func (r *run) view(name string) view {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.table.view(name)
}

// hubResponds logs when requests begin to fail without a response, and when they no
// longer do.
func (r *run) hubResponds(responds bool, err error) {
	r.hubMu.Lock()
	defer r.hubMu.Unlock()
	switch {
	case responds && r.hubFailing:
		log.FromContext(r.ctx).Info("Hub can be written again")
	case !responds && !r.hubFailing:
		log.FromContext(r.ctx).Error(err, "Cannot write to the hub, retrying")
	}
	r.hubFailing = !responds
}

// table has the profiles of the source and of the hub by name.
type table struct {
	options      *Options
	candidates   map[string][]*inventory.Profile // of the source, in the order of precedence
	published    map[string]*inventory.Profile   // of the hub, also of other managers
	sourceSynced bool
	hubSynced    bool
}

func newTable(o *Options) table {
	return table{options: o, candidates: map[string][]*inventory.Profile{}, published: map[string]*inventory.Profile{}}
}

// concerns reports whether there is something to publish or to remove.
func (t *table) concerns(name string) bool {
	published := t.published[name]
	return len(t.candidates[name]) > 0 || published != nil && t.options.isOwn(published)
}

// names returns all names.
func (t *table) names() []string {
	var names []string
	for name := range t.candidates {
		names = append(names, name)
	}
	for name := range t.published {
		if len(t.candidates[name]) == 0 {
			names = append(names, name)
		}
	}
	return names
}

func (t *table) put(profile *inventory.Profile) {
	t.drop(inventory.KeyOf(profile))
	t.candidates[profile.Name] = append(t.candidates[profile.Name], profile)
	slices.SortFunc(t.candidates[profile.Name], inventory.ComparePrecedence)
}

func (t *table) drop(key inventory.Key) {
	left := slices.DeleteFunc(t.candidates[key.Name], func(p *inventory.Profile) bool { return inventory.KeyOf(p) == key })
	if len(left) == 0 {
		delete(t.candidates, key.Name)
		return
	}
	t.candidates[key.Name] = left
}

// view is what the table has for a name.
type view struct {
	source     *inventory.Profile   // to publish, or nil
	duplicates []*inventory.Profile // others of the source with the name
	published  *inventory.Profile   // or nil
	synced     bool                 // what the source has not listed does not exist
	ready      bool                 // published and source are known
}

// view returns the state of a name. If several clusters of the source have it, the
// one that is published stays.
func (t *table) view(name string) view {
	v := view{published: t.published[name], synced: t.sourceSynced, ready: t.hubSynced}
	candidates := t.candidates[name]
	if len(candidates) == 0 {
		v.ready = v.ready && t.sourceSynced
		return v
	}
	chosen := 0
	if v.published != nil && t.options.isOwn(v.published) {
		before := v.published.Annotations[inventory.AnnotationClusterName]
		same := slices.IndexFunc(candidates, func(p *inventory.Profile) bool { return inventory.ClusterName(p) == before })
		chosen = max(same, 0)
		// The cluster that is published may still be listed.
		v.ready = v.ready && (same >= 0 || before == "" || t.sourceSynced)
	}
	v.source = candidates[chosen]
	for i, candidate := range candidates {
		if i != chosen {
			v.duplicates = append(v.duplicates, candidate)
		}
	}
	return v
}

// sourceSink receives the profiles to publish.
type sourceSink struct{ *run }

func (s sourceSink) Put(profile *inventory.Profile) {
	s.change(func(t *table) []string {
		t.put(profile)
		return []string{profile.Name}
	})
}

func (s sourceSink) Remove(key inventory.Key) {
	s.change(func(t *table) []string {
		t.drop(key)
		return []string{key.Name}
	})
}

func (s sourceSink) Synced() {
	s.change(func(t *table) []string {
		t.sourceSynced = true
		return t.names()
	})
}

// hubSink receives the profiles in the hub.
type hubSink struct{ *run }

func (s hubSink) Put(profile *inventory.Profile) {
	s.change(func(t *table) []string {
		t.published[profile.Name] = profile
		return []string{profile.Name}
	})
}

func (s hubSink) Remove(key inventory.Key) {
	s.change(func(t *table) []string {
		delete(t.published, key.Name)
		return []string{key.Name}
	})
}

func (s hubSink) Synced() {
	s.change(func(t *table) []string {
		t.hubSynced = true
		return t.names()
	})
}
