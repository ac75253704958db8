// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package clusters

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
)

// Registry holds clusters that somebody else runs, so that a program can look
// them up. Added to a multi-cluster manager, it holds the clusters that the
// manager is engaged with:
//
//	registry := clusters.NewRegistry[cluster.Cluster]()
//	err := mgr.Add(registry)
//	…
//	err = registry.ForEach(func(name multicluster.ClusterName, cl cluster.Cluster) error { … })
//
// The zero value is ready for use. It must not be copied once it is used. All
// methods may be called from any goroutine.
type Registry[T cluster.Cluster] struct {
	// EqualClusters tells AddOrReplace and RemoveIfEqual whether two clusters
	// are the same. It is set before use, and may be called from any goroutine.
	// Defaults to the function of that name.
	EqualClusters func(a, b T) bool

	mu      sync.RWMutex // guards what follows; not held during a call of others' code
	entries map[multicluster.ClusterName]*entry[T]
}

var _ multicluster.Aware = &Registry[cluster.Cluster]{}

// entry is one cluster's stay in a registry.
type entry[T cluster.Cluster] struct {
	ctx     context.Context // ends the stay; nil if only Remove does
	cluster T
}

// NewRegistry returns a registry that holds no clusters.
func NewRegistry[T cluster.Cluster]() *Registry[T] {
	return &Registry[T]{EqualClusters: EqualClusters[T]}
}

// Add puts the cluster into the registry until it is removed: the context is
// only asked whether it has ended. The error is ErrClusterExists (by errors.Is)
// if the name is taken.
func (r *Registry[T]) Add(ctx context.Context, name multicluster.ClusterName, cl T) error {
	if err := check(ctx, name, cl); err != nil {
		return err
	}
	if !r.replace(name, nil, &entry[T]{cluster: cl}) {
		return fmt.Errorf("cluster %q: %w", name, ErrClusterExists)
	}
	return nil
}

// AddOrReplace is Add where the name may be taken: by an equal cluster, which
// then stays, until it is removed even if it was engaged, or by another one,
// which is replaced.
func (r *Registry[T]) AddOrReplace(ctx context.Context, name multicluster.ClusterName, cl T) error {
	if err := check(ctx, name, cl); err != nil {
		return err
	}
	for {
		old, next := r.entry(name), &entry[T]{cluster: cl}
		if old != nil && r.equal(old.cluster, cl) {
			next.cluster = old.cluster
		}
		if r.replace(name, old, next) {
			return nil
		}
	}
}

// Engage puts the cluster into the registry until the context ends, in the
// place of any other of its name. It is an error if the cluster is not of the
// registry's type.
func (r *Registry[T]) Engage(ctx context.Context, name multicluster.ClusterName, cl cluster.Cluster) error {
	typed, ok := cl.(T)
	if !ok {
		return fmt.Errorf("cluster %q: is a %T, not a %v", name, cl, reflect.TypeFor[T]())
	}
	if err := check(ctx, name, cl); err != nil {
		return err
	}
	e := &entry[T]{ctx: ctx, cluster: typed}
	r.mu.Lock()
	r.putLocked(name, e)
	r.mu.Unlock()
	context.AfterFunc(ctx, func() { r.replace(name, e, nil) })
	return nil
}

// Start blocks until the context ends. It makes the registry something that a
// manager can run. Clusters stay as they are.
func (r *Registry[T]) Start(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

// Remove takes the cluster of that name out of the registry, if there is one.
func (r *Registry[T]) Remove(name multicluster.ClusterName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.entries, name)
}

// RemoveIfEqual takes the cluster of that name out of the registry if it is
// equal to the given one, and never another that took its place.
func (r *Registry[T]) RemoveIfEqual(name multicluster.ClusterName, cl T) {
	for {
		old := r.entry(name)
		if old == nil || !r.equal(old.cluster, cl) || r.replace(name, old, nil) {
			return
		}
	}
}

// Get returns the cluster of that name. It never blocks. The error is
// multicluster.ErrClusterNotFound (by errors.Is) if there is no such cluster.
func (r *Registry[T]) Get(ctx context.Context, name multicluster.ClusterName) (cluster.Cluster, error) {
	cl, err := r.GetTyped(ctx, name)
	if err != nil {
		return nil, err
	}
	return cl, nil
}

// GetTyped is Get for the registry's own type.
func (r *Registry[T]) GetTyped(_ context.Context, name multicluster.ClusterName) (T, error) {
	e := r.entry(name)
	if e == nil {
		return *new(T), multicluster.NotFoundError(name)
	}
	return e.cluster, nil
}

// ClusterNames returns the names of the clusters, sorted.
func (r *Registry[T]) ClusterNames() []multicluster.ClusterName {
	return slices.Sorted(maps.Keys(r.snapshot()))
}

// ForEach calls the function for every cluster there is at the time of the
// call, in the order of their names. It stops at the first error, which it
// returns. The function may use the registry.
func (r *Registry[T]) ForEach(fn func(name multicluster.ClusterName, cl T) error) error {
	present := r.snapshot()
	for _, name := range slices.Sorted(maps.Keys(present)) {
		if err := fn(name, present[name].cluster); err != nil {
			return err
		}
	}
	return nil
}

// entry returns the entry of that name whose stay has not ended, or nil.
func (r *Registry[T]) entry(name multicluster.ClusterName) *entry[T] {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.entries[name].present()
}

func (r *Registry[T]) snapshot() map[multicluster.ClusterName]*entry[T] {
	r.mu.RLock()
	defer r.mu.RUnlock()
	present := maps.Clone(r.entries)
	maps.DeleteFunc(present, func(_ multicluster.ClusterName, e *entry[T]) bool { return e.present() == nil })
	return present
}

// replace puts next in the place of old, provided that old is who is there.
// Nil stands for nobody.
func (r *Registry[T]) replace(name multicluster.ClusterName, old, next *entry[T]) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if current := r.entries[name]; current != old && current.present() != old {
		return false
	}
	if next == nil {
		delete(r.entries, name)
	} else {
		r.putLocked(name, next)
	}
	return true
}

func (r *Registry[T]) putLocked(name multicluster.ClusterName, e *entry[T]) {
	if r.entries == nil {
		r.entries = map[multicluster.ClusterName]*entry[T]{}
	}
	r.entries[name] = e
}

// present returns the entry, or nil if its stay has ended.
func (e *entry[T]) present() *entry[T] {
	if e == nil || e.ctx != nil && e.ctx.Err() != nil {
		return nil
	}
	return e
}

func (r *Registry[T]) equal(a, b T) bool {
	if r.EqualClusters != nil {
		return r.EqualClusters(a, b)
	}
	return EqualClusters(a, b)
}
