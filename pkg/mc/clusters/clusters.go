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

// ErrClusterExists says that a cluster of that name has been added already.
// Test for it with errors.Is.
var ErrClusterExists = errors.New("cluster exists already")

const defaultWaitCacheTimeout = 30 * time.Second

// Clusters holds clusters by name and runs them. The zero value is ready for
// use. It must not be copied once it is used. The fields are set before that;
// all methods may be called from any goroutine.
type Clusters[T cluster.Cluster] struct {
	// ErrorHandler is told of what goes wrong with a cluster, as a
	// logr.Logger's Error is: that its Start returned although nobody told it
	// to stop, or that it does not stop although told to. It may be called from
	// any goroutine, and must not block. Defaults to logging.
	ErrorHandler func(error, string, ...any)

	// EqualClusters tells AddOrReplace whether two clusters are the same. It
	// may be called from any goroutine. Defaults to the function of that name.
	EqualClusters func(a, b T) bool

	// WaitCacheTimeout limits how long Add waits for a cluster's caches to sync
	// and to be indexed, IndexField for one cluster, and AddOrReplace for the
	// old cluster to stop. Defaults to 30 seconds.
	WaitCacheTimeout time.Duration

	mu      sync.RWMutex // guards what follows, and what members say; never held during a call of others' code
	members map[multicluster.ClusterName]*member[T]
	indexes []Index
}

var _ multicluster.Provider = &Clusters[cluster.Cluster]{}

// New returns Clusters that hold none, with all fields set to their defaults.
func New[T cluster.Cluster]() Clusters[T] {
	return Clusters[T]{
		ErrorHandler:     log.Log.WithName("clusters").Error,
		EqualClusters:    EqualClusters[T],
		WaitCacheTimeout: defaultWaitCacheTimeout,
	}
}

// Add runs the cluster, waits until its caches have synced, indexes them, and
// engages it. A nil aware stands for nobody to engage it with.
//
// The cluster stays until the context ends, and those of all calls of
// AddOrReplace that found it there, or Remove is called, or its Start returns.
// Then Get no longer finds it, and the context that it was started and engaged
// with ends. That has the values of the context given here, a
// multicluster.Engagement among them.
//
// After an error nothing of the cluster remains, but for a Start that does not
// heed its context. The error is ErrClusterExists (by errors.Is) if the name is
// taken, and context.DeadlineExceeded if WaitCacheTimeout has passed.
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

// AddOrReplace is Add where the name may be taken: by an equal cluster, which
// then stays, for as long as this context lives at least, or by another one,
// which is stopped first. If an equal cluster is just being added, AddOrReplace
// waits for that to succeed, and otherwise adds its own.
//
// The old cluster is given WaitCacheTimeout to stop. After that the new one
// starts all the same, so nothing old can keep it out. If several clusters are
// put under a name at once, one of them remains, and the calls for those that
// it replaced while they started return an error.
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
			if c.vouch(ctx, old) {
				return nil
			}
			continue
		}
		m := newMember(ctx, clusterName, cl)
		if !c.enter(ctx, m, old) {
			m.leave(nil)
			continue // somebody was faster: look again
		}
		if old != nil {
			old.leave(errReplaced)
		}
		return c.start(m, old, aware)
	}
}

// Remove stops the cluster of that name and forgets it, if there is one. It
// does not wait for the cluster to have stopped.
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

// GetTyped is Get for the clusters' own type.
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
	if m := c.members[name]; m != nil && m.ctx.Err() == nil && m.vouchedFor() {
		return m
	}
	return nil
}

// enter puts m in the place of old, provided that old is who is there: nobody,
// if it is nil. The context is the first to vouch for m.
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
	c.vouchLocked(ctx, m)
	return true
}

// forget makes room for others of m's name, once m has left.
func (c *Clusters[T]) forget(m *member[T]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, v := range m.vouchers {
		v.stop()
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
