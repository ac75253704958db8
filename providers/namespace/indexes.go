// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package namespace

import (
	"context"
	"fmt"
	"reflect"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// sharedIndexes are the indexes of the shared informers. A field has one function.
type sharedIndexes struct {
	mu  sync.Mutex // guards what follows; not held while code of others is called
	all map[indexKey]*sharedIndex
}

type sharedIndex struct {
	code  uintptr // of the function
	added bool
}

type indexKey struct {
	kind  schema.GroupVersionKind
	form  string // typed, unstructured or metadata: each has its own informer
	field string
}

func formOf(obj runtime.Object) string {
	switch obj.(type) {
	case runtime.Unstructured:
		return "unstructured"
	case *metav1.PartialObjectMetadata, *metav1.PartialObjectMetadataList:
		return "metadata"
	}
	return "typed"
}

// claim returns the index of the field, and whether the function is, or becomes, its.
func (x *sharedIndexes) claim(key indexKey, extract client.IndexerFunc) (_ *sharedIndex, same bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	code := reflect.ValueOf(extract).Pointer()
	if x.all == nil {
		x.all = map[indexKey]*sharedIndex{}
	}
	if x.all[key] == nil {
		x.all[key] = &sharedIndex{code: code}
	}
	return x.all[key], x.all[key].code == code
}

// add adds the index to the shared cache, once.
func (x *sharedIndexes) add(index *sharedIndex, do func() error) error {
	x.mu.Lock()
	added := index.added
	x.mu.Unlock()
	if added {
		return nil
	}
	err := do()
	x.mu.Lock()
	defer x.mu.Unlock()
	if index.added {
		return nil // by another call, so that this one has failed
	}
	index.added = err == nil
	return err
}

// indexes are those of one namespace.
type indexes struct {
	shared *sharedIndexes

	mu        sync.Mutex // guards conflicts
	conflicts map[indexKey]error
}

// add adds an index to the shared cache. If the field has another function, Lists in
// this namespace that use it are errors.
func (x *indexes) add(ctx context.Context, s *scope, shared cache.Cache, obj client.Object, field string, extract client.IndexerFunc) error {
	gvk, _, err := s.kindOf(obj)
	if err != nil {
		return err
	}
	key := indexKey{gvk, formOf(obj), field}
	index, same := x.shared.claim(key, extract)
	if !same {
		err := fmt.Errorf("namespace %q: field %q of %T is already indexed by another function: namespaces share their indexes", s.namespace, field, obj)
		x.mu.Lock()
		defer x.mu.Unlock()
		if x.conflicts == nil {
			x.conflicts = map[indexKey]error{}
		}
		x.conflicts[key] = err
		return err
	}
	return x.shared.add(index, func() error { return shared.IndexField(ctx, obj, field, extract) })
}

// usable returns an error if the list uses an index that could not be added.
func (x *indexes) usable(list client.ObjectList, s *scope, opts []client.ListOption) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(x.conflicts) == 0 {
		return nil
	}
	options := client.ListOptions{}
	options.ApplyOptions(opts)
	if options.FieldSelector == nil {
		return nil
	}
	gvk, _, err := s.kindOf(list)
	if err != nil {
		return err
	}
	for _, requirement := range options.FieldSelector.Requirements() {
		if err := x.conflicts[indexKey{gvk, formOf(list), requirement.Field}]; err != nil {
			return err
		}
	}
	return nil
}
