// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package clusters

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
)

// Why members leave.
var (
	errRemoved  = errors.New("the cluster has been removed")
	errReplaced = errors.New("the cluster has been replaced by another of its name")
	errStopped  = errors.New("the cluster's Start has returned")
)

// member is a cluster that is held under a name.
type member[T cluster.Cluster] struct {
	name    multicluster.ClusterName
	cluster T

	ctx   context.Context // the member's own: ends when it leaves, with the cause
	leave context.CancelCauseFunc

	started chan struct{} // closed when the cluster's Start is called
	stopped chan struct{} // closed when it has returned, or will not be called
	settled chan struct{} // closed when the cluster has been engaged, or that has failed

	// The lock of Clusters guards what follows.
	ready   bool // found by Get
	indexed bool // has the indexes so far, and gets those that follow
	owners  []*owner
}

// owner is a context that keeps a member until it ends.
type owner struct {
	ctx  context.Context // the caller's of Add or AddOrReplace
	stop func() bool     // ends the ownership without an effect on the member
}

func newMember[T cluster.Cluster](ctx context.Context, name multicluster.ClusterName, cl T) *member[T] {
	m := &member[T]{
		name: name, cluster: cl,
		started: make(chan struct{}),
		stopped: make(chan struct{}),
		settled: make(chan struct{}),
	}
	m.ctx, m.leave = context.WithCancelCause(context.WithoutCancel(ctx))
	return m
}

// own keeps m at least until the context ends. It returns false if m has left.
func (c *Clusters[T]) own(ctx context.Context, m *member[T]) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.presentLocked(m.name) != m {
		return false
	}
	c.ownLocked(ctx, m)
	return true
}

func (c *Clusters[T]) ownLocked(ctx context.Context, m *member[T]) {
	for _, o := range m.owners {
		if o.ctx.Done() == ctx.Done() {
			return // they end together
		}
	}
	o := &owner{ctx: ctx}
	o.stop = context.AfterFunc(ctx, func() { c.disown(m, o) })
	m.owners = append(m.owners, o)
}

// disown removes an owner of m, which leaves with the last one.
func (c *Clusters[T]) disown(m *member[T], o *owner) {
	c.mu.Lock()
	m.owners = slices.DeleteFunc(m.owners, func(other *owner) bool { return other == o })
	last := len(m.owners) == 0
	c.mu.Unlock()
	if last {
		m.leave(context.Cause(o.ctx))
	}
}

// owned reports whether m has an owner whose context has not ended.
func (m *member[T]) owned() bool {
	return slices.ContainsFunc(m.owners, func(o *owner) bool { return o.ctx.Err() == nil })
}

// start runs m after its predecessor, which may be nil, and engages it.
func (c *Clusters[T]) start(m, predecessor *member[T], aware multicluster.Aware) error {
	defer close(m.settled)
	context.AfterFunc(m.ctx, func() { c.forget(m) })
	go c.run(m, predecessor)
	if err := c.engage(m, aware); err != nil {
		m.leave(err)
		c.forget(m)
		return fmt.Errorf("cluster %q: %w", m.name, err)
	}
	return nil
}

// run runs the cluster until it leaves.
func (c *Clusters[T]) run(m, predecessor *member[T]) {
	defer close(m.stopped)
	if predecessor != nil {
		c.awaitStop(predecessor)
	}
	if m.ctx.Err() != nil {
		return
	}
	close(m.started)
	err := m.cluster.Start(m.ctx)
	if m.ctx.Err() == nil {
		cause := errStopped
		if err != nil {
			cause = fmt.Errorf("%w: %w", errStopped, err)
		}
		m.leave(cause)
		c.forget(m)
		c.report(m, cause, "Cluster stopped")
		return
	}
	if err != nil && !errors.Is(err, m.ctx.Err()) {
		c.report(m, err, "Cluster failed to stop cleanly")
	}
}

// awaitStop waits until m, which has left, has stopped, but not for ever.
func (c *Clusters[T]) awaitStop(m *member[T]) {
	limit := time.NewTimer(c.waitCacheTimeout())
	defer limit.Stop()
	select {
	case <-m.stopped:
	case <-limit.C:
		c.report(m, fmt.Errorf("not stopped within %v", c.waitCacheTimeout()), "Timed out stopping cluster, starting its replacement")
	}
}

// engage waits until the cluster is ready, and engages it.
func (c *Clusters[T]) engage(m *member[T], aware multicluster.Aware) error {
	select {
	case <-m.started:
	case <-m.ctx.Done():
		return context.Cause(m.ctx)
	}
	if err := c.inTime(m.ctx, func(ctx context.Context) error { return c.prepare(ctx, m) }); err != nil {
		return err
	}
	c.mu.Lock()
	m.ready = true
	c.mu.Unlock()
	if aware != nil && m.ctx.Err() == nil {
		if err := aware.Engage(m.ctx, m.name, m.cluster); err != nil {
			return fmt.Errorf("cannot engage: %w", err)
		}
	}
	return context.Cause(m.ctx)
}

// prepare waits until the cluster's caches have synced, and indexes them.
func (c *Clusters[T]) prepare(ctx context.Context, m *member[T]) error {
	if !m.cluster.GetCache().WaitForCacheSync(ctx) {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return errors.New("the caches cannot be synced")
	}
	for _, index := range c.indexesFor(m) {
		if err := index.apply(ctx, m.cluster); err != nil {
			return err
		}
	}
	return nil
}

// inTime calls a function that may not honour its context. It waits for it at
// most until the context ends or WaitCacheTimeout has passed.
func (c *Clusters[T]) inTime(ctx context.Context, call func(context.Context) error) error {
	limit := c.waitCacheTimeout()
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("the caches are not ready within %v: %w", limit, context.DeadlineExceeded))
	returned := make(chan error, 1)
	go func() {
		defer cancel()
		returned <- call(ctx)
	}()
	select {
	case err := <-returned:
		return err
	case <-ctx.Done():
	}
	select {
	case err := <-returned: // it has ended the context
		return err
	default:
		return context.Cause(ctx)
	}
}
