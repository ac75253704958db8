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

// Registry holds clusters for a program to look up. It does not run them. Added
// to a multi-cluster manager, it holds the clusters that the manager is engaged
// with:
//
//	registry := clusters.NewRegistry[cluster.Cluster]()
//	err := mgr.Add(registry)
//	…
//	err = registry.ForEach(func(name multicluster.ClusterName, cl cluster.Cluster) error { … })
//
// The zero value is ready for use. It must not be copied after first use. All
// methods may be called from any goroutine.
type Registry[T cluster.Cluster] struct {
	// EqualClusters reports to AddOrReplace and RemoveIfEqual whether two
	// clusters are the same. It is set before use, and may be called from any
	// goroutine. Defaults to the function of that name.
	EqualClusters func(a, b T) bool

	mu      sync.RWMutex // guards what follows; not held while code of others is called
	entries map[multicluster.ClusterName]*entry[T]
}

var _ multicluster.Aware = &Registry[cluster.Cluster]{}

// entry is a cluster in a registry.
type entry[T cluster.Cluster] struct {
	ctx     context.Context // of the engagement: removes the entry when it ends; nil if there is none
	cluster T
}

// NewRegistry returns an empty registry.
func NewRegistry[T cluster.Cluster]() *Registry[T] {
	return &Registry[T]{EqualClusters: EqualClusters[T]}
}

// Add adds the cluster until it is removed. It fails if the context has ended
// before the call. The error is ErrClusterExists (by errors.Is) if the name is
// taken.
func (r *Registry[T]) Add(ctx context.Context, name multicluster.ClusterName, cl T) error {
	if err := check(ctx, name, cl); err != nil {
		return err
	}
	if !r.replace(name, nil, &entry[T]{cluster: cl}) {
		return fmt.Errorf("cluster %q: %w", name, ErrClusterExists)
	}
	return nil
}

// AddOrReplace is Add where the name may be taken. An equal cluster is kept until
// it is removed, also if it was engaged; another one is replaced.
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

// Engage adds the cluster until the context ends. It replaces any other of its
// name. It is an error if the cluster is not of the registry's type.
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

// Start blocks until the context ends, so that a manager can run the registry.
func (r *Registry[T]) Start(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

// Remove removes the cluster of that name, if there is one.
func (r *Registry[T]) Remove(name multicluster.ClusterName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.entries, name)
}

// RemoveIfEqual removes the cluster of that name if it is equal to cl, and never
// another one that has replaced it.
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

// GetTyped is Get with the registry's own type.
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

// ForEach calls the function for every cluster that is present at the time of the
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

// entry returns the present entry of that name, or nil.
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

// replace replaces old by next if old is present. Nil stands for none.
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

// present returns the entry, or nil if its engagement has ended.
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
