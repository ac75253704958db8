// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/rollcall-dev/rollcall/pkg/mc/internal/indexkey"
)

type index struct {
	object  client.Object
	field   string
	extract client.IndexerFunc
}

func (i index) key() indexkey.Key {
	return indexkey.Of(i.object, i.field)
}

// IndexField adds the index to the caches of all clusters, those there now, at
// the same time, and those to come. It must be called before the informer of
// the kind is started, best before the manager. It is an error to index a field
// twice.
//
// The errors of single clusters are joined; a cluster that leaves meanwhile has
// none. One that does not answer is waited for until ConnectTimeout is over or
// the context ends. The index counts as added nevertheless: it is tried again,
// with backoff, as long as the cluster is engaged, and when it is engaged anew.
func (f *Fleet) IndexField(ctx context.Context, obj client.Object, field string, extractValue client.IndexerFunc) error {
	added := index{object: obj, field: field, extract: extractValue}
	present, err := f.addIndex(added)
	if err != nil {
		return err
	}
	ctx, cancel := within(ctx, f.options.Connection.Clock, f.options.Connection.ConnectTimeout, "answer")
	defer cancel()
	errs := make([]error, len(present))
	var waiting sync.WaitGroup
	for i, m := range present {
		waiting.Go(func() {
			errs[i] = m.awaitIndex(ctx, added)
		})
	}
	waiting.Wait()
	return errors.Join(errs...)
}

// addIndex notes the index and returns the clusters to give it to. All others
// get it from addIndexes.
func (f *Fleet) addIndex(added index) ([]*member, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if slices.ContainsFunc(f.indexes, func(other index) bool { return other.key() == added.key() }) {
		return nil, fmt.Errorf("field %q of %T is indexed already", added.field, added.object)
	}
	f.indexes = append(f.indexes, added)
	return slices.Collect(maps.Keys(f.indexed)), nil
}

// addIndexes gives a cluster that is being connected the indexes so far. Those
// that follow are added to it by IndexField.
func (f *Fleet) addIndexes(ctx context.Context, m *member) error {
	f.mu.Lock()
	f.indexed[m] = struct{}{}
	indexes := append([]index(nil), f.indexes...)
	f.mu.Unlock()
	for _, i := range indexes {
		if err := m.index(ctx, i); err != nil {
			return err
		}
	}
	return nil
}

func (f *Fleet) forgetIndexes(m *member) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.indexed, m)
}

// awaitIndex has the index added, sooner or later, and returns when it has been
// tried once, or the context ends.
func (m *member) awaitIndex(ctx context.Context, i index) error {
	tried := make(chan error, 1)
	if !m.work(func() { m.keepIndexing(i, tried) }) {
		return nil
	}
	var err error
	select {
	case err = <-tried:
	case <-m.ctx.Done():
	case <-ctx.Done():
		err = m.explainIndex(i, context.Cause(ctx))
	}
	if err == nil || m.ctx.Err() != nil {
		return nil
	}
	return fmt.Errorf("%w; it is tried again while the cluster is engaged", err)
}

// keepIndexing adds the index, and tries it again until that succeeds or the
// cluster leaves. What comes of it first is told.
func (m *member) keepIndexing(i index, tried chan<- error) {
	backoff := newBackoff(m.fleet.options.Connection.MinBackoff, m.fleet.options.Connection.MaxBackoff)
	for first := true; m.ctx.Err() == nil; first = false {
		err := m.index(m.ctx, i)
		if first {
			tried <- err
		}
		if err == nil {
			return
		}
		delay := backoff.Step()
		if !first {
			log.FromContext(m.ctx).Info("Index cannot be added, trying again", "error", err.Error(), "after", delay.Round(time.Millisecond).String())
		}
		timer := m.fleet.options.Connection.Clock.NewTimer(delay)
		select {
		case <-timer.C():
		case <-m.ctx.Done():
			timer.Stop()
		}
	}
}

func (m *member) index(ctx context.Context, i index) error {
	return m.explainIndex(i, m.GetFieldIndexer().IndexField(ctx, i.object, i.field, i.extract))
}

func (m *member) explainIndex(i index, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("cannot index field %q of %T in cluster %q: %w", i.field, i.object, m.name, err)
}
