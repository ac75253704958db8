// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package fieldindex

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
)

// syncTimeout is how long the first List that uses an index waits for the informer
// to sync: that of a kind that is forbidden never does.
const syncTimeout = 10 * time.Second

var errNotSynced = errors.New(`the cache has not synced; see the log lines "Watch failed"`)

// indexer adds the indexes of one cluster.
type indexer struct {
	cluster cluster.Cluster
	name    string // for errors
	shared  *Set
	own     Set

	mu    sync.Mutex // guards what follows; not held across I/O
	state map[Key]progress
	kinds map[Key]chan struct{} // one token: held while an index of the kind is added
}

// progress is how far an index was added.
type progress int

const (
	unused   progress = iota
	unsynced          // the informer has not synced within syncTimeout: later Lists do not wait
	usable
)

var _ client.FieldIndexer = &indexer{}

func newIndexer(cl cluster.Cluster, name string, shared *Set) *indexer {
	return &indexer{cluster: cl, name: name, shared: shared, state: map[Key]progress{}, kinds: map[Key]chan struct{}{}}
}

// IndexField implements client.FieldIndexer.
func (x *indexer) IndexField(_ context.Context, obj client.Object, field string, extractValue client.IndexerFunc) error {
	return x.own.Add(Index{Object: obj, Field: field, Extract: extractValue})
}

// list lists with the reader, after the indexes that the options use were added.
func (x *indexer) list(ctx context.Context, reader client.Reader, list client.ObjectList, opts []client.ListOption) error {
	used := x.used(list, opts)
	for _, i := range used {
		if err := x.ensure(ctx, i); err != nil {
			return fmt.Errorf("index %q of %T is not there yet in %s: %w", i.Field, i.Object, x.name, err)
		}
	}
	return reader.List(ctx, list, opts...)
}

// used returns the indexes that a List with the options uses.
func (x *indexer) used(list client.ObjectList, opts []client.ListOption) []Index {
	if x.shared.empty() && x.own.empty() {
		return nil
	}
	options := client.ListOptions{}
	options.ApplyOptions(opts)
	if options.FieldSelector == nil || options.FieldSelector.Empty() {
		return nil
	}
	item, err := itemOf(list, x.cluster.GetScheme())
	if err != nil {
		return nil // the reader returns the error
	}
	var used []Index
	for _, requirement := range options.FieldSelector.Requirements() {
		k := KeyOf(item, requirement.Field)
		if i, ok := x.own.get(k); ok {
			used = append(used, i)
		} else if i, ok := x.shared.get(k); ok {
			used = append(used, i)
		}
	}
	return used
}

// itemOf returns an object of the type that a cache has for the list's items.
func itemOf(list client.ObjectList, scheme *runtime.Scheme) (runtime.Object, error) {
	gvk, err := apiutil.GVKForObject(list, scheme)
	if err != nil {
		return nil, err
	}
	gvk.Kind = strings.TrimSuffix(gvk.Kind, "List")
	var item runtime.Object
	switch list.(type) {
	case runtime.Unstructured:
		item = &unstructured.Unstructured{}
	case *metav1.PartialObjectMetadataList:
		item = &metav1.PartialObjectMetadata{}
	default:
		return scheme.New(gvk)
	}
	item.GetObjectKind().SetGroupVersionKind(gvk)
	return item, nil
}

// ensure adds the index unless it was added, and waits until its informer has
// synced.
func (x *indexer) ensure(ctx context.Context, i Index) error {
	if x.progressOf(i) == usable {
		return nil
	}
	lock := x.lockOf(i)
	select {
	case lock <- struct{}{}:
		defer func() { <-lock }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	before := x.progressOf(i)
	if before == usable {
		return nil
	}
	informers := x.cluster.GetCache()
	// It fails also if other code has added the index to the cache directly. Then the
	// informer is there, and the List reports an index that is missing.
	_ = informers.IndexField(ctx, i.Object, i.Field, i.Extract)
	if before == unsynced {
		informer, err := informers.GetInformer(ctx, i.Object, cache.BlockUntilSynced(false))
		if err == nil && !informer.HasSynced() {
			return errNotSynced
		}
		return x.synced(i, err)
	}
	waiting, cancel := context.WithTimeout(ctx, syncTimeout)
	defer cancel()
	_, err := informers.GetInformer(waiting, i.Object)
	switch {
	case err != nil && ctx.Err() != nil:
		return fmt.Errorf("%w: %w", context.Cause(ctx), errNotSynced)
	case err != nil && waiting.Err() != nil:
		x.setProgress(i, unsynced)
		return errNotSynced
	}
	return x.synced(i, err)
}

// synced notes that the index is usable unless there was an error, which it returns.
func (x *indexer) synced(i Index, err error) error {
	if err == nil {
		x.setProgress(i, usable)
	}
	return err
}

func (x *indexer) progressOf(i Index) progress {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.state[i.Key()]
}

func (x *indexer) setProgress(i Index, p progress) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.state[i.Key()] = p
}

func (x *indexer) lockOf(i Index) chan struct{} {
	x.mu.Lock()
	defer x.mu.Unlock()
	kind := i.Key().kindOf()
	if x.kinds[kind] == nil {
		x.kinds[kind] = make(chan struct{}, 1)
	}
	return x.kinds[kind]
}

// forget notes that the informer of the object's kind was removed.
func (x *indexer) forget(obj client.Object) {
	x.mu.Lock()
	defer x.mu.Unlock()
	removed := KeyOf(obj, "")
	maps.DeleteFunc(x.state, func(k Key, _ progress) bool { return k.kindOf() == removed })
}
