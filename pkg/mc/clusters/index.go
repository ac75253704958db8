// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package clusters

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/rollcall-dev/rollcall/pkg/mc/internal/fieldindex"
)

// Index is a field index that was added with IndexField.
type Index struct {
	// Object is of the kind that is indexed.
	Object client.Object
	// Field is the name of the index.
	Field string
	// Extractor returns an object's values of the field.
	Extractor client.IndexerFunc
}

// IndexField adds a field index to the cache of every cluster, present and
// future. It indexes all present clusters at the same time, and waits for each
// of them at most WaitCacheTimeout.
//
// The errors of single clusters are joined; the index counts as added
// nevertheless. To add it again with the same function does nothing; another
// function for the field is an error. Functions that differ only in variables that
// they capture count as the same.
func (c *Clusters[T]) IndexField(ctx context.Context, obj client.Object, field string, extractValue client.IndexerFunc) error {
	index := Index{Object: obj, Field: field, Extractor: extractValue}
	members, err := c.addIndex(index)
	if err != nil {
		return err
	}
	errs := make([]error, len(members))
	var indexing sync.WaitGroup
	for i, m := range members {
		indexing.Go(func() {
			mctx, cancel := context.WithCancelCause(ctx)
			defer cancel(nil)
			defer context.AfterFunc(m.ctx, func() { cancel(errRemoved) })()
			err := c.inTime(mctx, func(ctx context.Context) error { return index.apply(ctx, m.cluster) })
			if err != nil && m.ctx.Err() == nil {
				errs[i] = fmt.Errorf("cluster %q: %w", m.name, err)
			}
		})
	}
	indexing.Wait()
	return errors.Join(errs...)
}

// Indexers returns the indexes added so far, in that order.
func (c *Clusters[T]) Indexers() []Index {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return slices.Clone(c.indexes)
}

// addIndex adds the index and returns the members to apply it to. All others get
// it from indexesFor.
func (c *Clusters[T]) addIndex(index Index) ([]*member[T], error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if at := slices.IndexFunc(c.indexes, func(other Index) bool { return other.key() == index.key() }); at >= 0 {
		if !fieldindex.SameCode(c.indexes[at].Extractor, index.Extractor) {
			return nil, fmt.Errorf("field %q of %T is already indexed by another function", index.Field, index.Object)
		}
		return nil, nil
	}
	c.indexes = append(c.indexes, index)
	var members []*member[T]
	for _, m := range c.members {
		if m.indexed {
			members = append(members, m)
		}
	}
	return members, nil
}

// indexesFor returns the indexes to apply to the member now. IndexField applies
// those that follow.
func (c *Clusters[T]) indexesFor(m *member[T]) []Index {
	c.mu.Lock()
	defer c.mu.Unlock()
	m.indexed = true
	return slices.Clone(c.indexes)
}

func (i Index) apply(ctx context.Context, cl cluster.Cluster) error {
	if err := cl.GetFieldIndexer().IndexField(ctx, i.Object, i.Field, i.Extractor); err != nil {
		return fmt.Errorf("cannot index field %q of %T: %w", i.Field, i.Object, err)
	}
	return nil
}

func (i Index) key() fieldindex.Key {
	return fieldindex.KeyOf(i.Object, i.Field)
}
