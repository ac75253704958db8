// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package clusters

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/rollcall-dev/rollcall/pkg/mc/internal/identity"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
)

// ErrClusterExists means that a cluster of that name has been added already.
// Test for it with errors.Is.
var ErrClusterExists = errors.New("cluster exists already")

const defaultWaitCacheTimeout = 30 * time.Second

// Clusters holds clusters by name and runs them. The zero value is ready for
// use. It must not be copied after first use. The fields are set before that;
// all methods may be called from any goroutine.
type Clusters[T cluster.Cluster] struct {
	// ErrorHandler is called as a logr.Logger's Error is when a cluster's Start
	// returns before the cluster is to stop, or does not return after that. It
	// may be called from any goroutine, and must not block. Defaults to logging.
	ErrorHandler func(error, string, ...any)

	// EqualClusters reports to AddOrReplace whether two clusters are the same.
	// It may be called from any goroutine. Defaults to the function of that name.
	EqualClusters func(a, b T) bool

	// WaitCacheTimeout limits how long Add waits for a cluster's caches to sync
	// and to be indexed, IndexField for one cluster, and AddOrReplace for the
	// old cluster to stop. Defaults to 30 seconds.
	WaitCacheTimeout time.Duration

	mu      sync.RWMutex // guards what follows, and parts of members; not held while code of others is called
	members map[multicluster.ClusterName]*member[T]
	indexes []Index
}

var _ multicluster.Provider = &Clusters[cluster.Cluster]{}

// New returns empty Clusters, with all fields set to their defaults.
func New[T cluster.Cluster]() Clusters[T] {
	return Clusters[T]{
		ErrorHandler:     log.Log.WithName("clusters").Error,
		EqualClusters:    EqualClusters[T],
		WaitCacheTimeout: defaultWaitCacheTimeout,
	}
}

// Add runs the cluster, waits until its caches have synced, indexes them, and
// engages the cluster. If aware is nil, it engages nothing.
//
// The cluster leaves when the context ends, and also those of all calls of
// AddOrReplace that found it there, or when Remove is called or its Start
// returns. Then Get no longer finds it, and the context that it was started and
// engaged with ends. That context has the values of ctx, such as a
// multicluster.Engagement.
//
// After an error nothing of the cluster remains, except a Start that does not
// honour its context. The error is ErrClusterExists (by errors.Is) if the name
// is taken, and context.DeadlineExceeded if WaitCacheTimeout has passed.
func (c *Clusters[T]) Add(ctx context.Context, clusterName multicluster.ClusterName, cl T, aware multicluster.Aware) error {
	if err := check(ctx, clusterName, cl); err != nil {
		return err
	}
	m := newMember(ctx, clusterName, cl)
	if !c.enter(ctx, m, nil) {
		m.leave(ErrClusterExists)
		return fmt.Errorf("cluster %q: %w", clusterName, ErrClusterExists)
	}
	return c.start(m, nil, aware)
}

// AddOrReplace is Add where the name may be taken. An equal cluster of that name
// is kept, at least until this context ends; another one is stopped and
// replaced. If an equal cluster is just being added, AddOrReplace waits for
// that, and adds its own if it fails.
//
// The new cluster starts when the old one has stopped, or after WaitCacheTimeout.
// If several clusters are added under a name at once, one of them remains, and
// the calls for those that it replaced while they started return an error.
func (c *Clusters[T]) AddOrReplace(ctx context.Context, clusterName multicluster.ClusterName, cl T, aware multicluster.Aware) error {
	if err := check(ctx, clusterName, cl); err != nil {
		return err
	}
	for {
		old := c.present(clusterName)
		if old != nil && c.equal(old.cluster, cl) {
			select {
			case <-old.settled:
			case <-ctx.Done():
				return fmt.Errorf("cluster %q: %w", clusterName, context.Cause(ctx))
			}
			if c.own(ctx, old) {
				return nil
			}
			continue
		}
		m := newMember(ctx, clusterName, cl)
		if !c.enter(ctx, m, old) {
			m.leave(nil)
			continue // another call was faster: look again
		}
		if old != nil {
			old.leave(errReplaced)
		}
		return c.start(m, old, aware)
	}
}

// Remove stops and removes the cluster of that name, if there is one. It does not
// wait until the cluster has stopped.
func (c *Clusters[T]) Remove(clusterName multicluster.ClusterName) {
	c.mu.Lock()
	m := c.members[clusterName]
	delete(c.members, clusterName)
	c.mu.Unlock()
	if m != nil {
		m.leave(errRemoved)
	}
}

// Get returns the cluster of that name. It never blocks. The error is
// multicluster.ErrClusterNotFound (by errors.Is) if there is no such cluster,
// and also multicluster.ErrClusterNotReady while it is being added.
func (c *Clusters[T]) Get(ctx context.Context, clusterName multicluster.ClusterName) (cluster.Cluster, error) {
	cl, err := c.GetTyped(ctx, clusterName)
	if err != nil {
		return nil, err
	}
	return cl, nil
}

// GetTyped is Get with the clusters' own type.
func (c *Clusters[T]) GetTyped(_ context.Context, clusterName multicluster.ClusterName) (T, error) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	m := c.presentLocked(clusterName)
	switch {
	case m == nil:
		return *new(T), multicluster.NotFoundError(clusterName)
	case !m.ready:
		return *new(T), multicluster.NotReadyError(clusterName, "starting")
	}
	return m.cluster, nil
}

// ClusterNames returns the names of the clusters that Get finds, sorted.
func (c *Clusters[T]) ClusterNames() []multicluster.ClusterName {
	c.mu.RLock()
	defer c.mu.RUnlock()
	names := make([]multicluster.ClusterName, 0, len(c.members))
	for name := range c.members {
		if m := c.presentLocked(name); m != nil && m.ready {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// present returns the member of that name that has not left, or nil.
func (c *Clusters[T]) present(name multicluster.ClusterName) *member[T] {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.presentLocked(name)
}

func (c *Clusters[T]) presentLocked(name multicluster.ClusterName) *member[T] {
	if m := c.members[name]; m != nil && m.ctx.Err() == nil && m.owned() {
		return m
	}
	return nil
}

// enter replaces old by m if old is present: nil if there is none. The context is
// m's first owner.
func (c *Clusters[T]) enter(ctx context.Context, m, old *member[T]) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.presentLocked(m.name) != old {
		return false
	}
	if c.members == nil {
		c.members = map[multicluster.ClusterName]*member[T]{}
	}
	c.members[m.name] = m
	c.ownLocked(ctx, m)
	return true
}

// forget removes m, which has left.
func (c *Clusters[T]) forget(m *member[T]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, o := range m.owners {
		o.stop()
	}
	if c.members[m.name] == m {
		delete(c.members, m.name)
	}
}

func (c *Clusters[T]) equal(a, b T) bool {
	if c.EqualClusters != nil {
		return c.EqualClusters(a, b)
	}
	return EqualClusters(a, b)
}

func (c *Clusters[T]) waitCacheTimeout() time.Duration {
	if c.WaitCacheTimeout > 0 {
		return c.WaitCacheTimeout
	}
	return defaultWaitCacheTimeout
}

func (c *Clusters[T]) report(m *member[T], err error, msg string) {
	handle := c.ErrorHandler
	if handle == nil {
		handle = log.FromContext(m.ctx).Error
	}
	handle(err, msg, "cluster", m.name)
}

func check(ctx context.Context, name multicluster.ClusterName, cl cluster.Cluster) error {
	if identity.IsNil(cl) {
		return fmt.Errorf("cluster %q: must not be nil", name)
	}
	if err := context.Cause(ctx); err != nil {
		return fmt.Errorf("cluster %q: %w", name, err)
	}
	return nil
}
