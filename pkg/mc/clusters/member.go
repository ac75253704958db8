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

// member is one cluster's stay under a name.
type member[T cluster.Cluster] struct {
	name    multicluster.ClusterName
	cluster T

	ctx   context.Context // ends when the cluster leaves, its cause says why
	leave context.CancelCauseFunc

	started chan struct{} // closed when the cluster's Start is called
	stopped chan struct{} // closed when it has returned, or will not be called
	settled chan struct{} // closed when the cluster is engaged, or has failed to be

	// The lock of Clusters guards what follows.
	ready    bool // found by Get
	indexed  bool // given the indexes so far, gets those that follow
	vouchers []*voucher
}

// voucher is a context for whose time a cluster is to stay.
type voucher struct {
	ctx  context.Context
	stop func() bool // has the member not be told of the context's end
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

// vouch has m stay until the context ends at least. It returns false if m is
// not there any more.
func (c *Clusters[T]) vouch(ctx context.Context, m *member[T]) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.presentLocked(m.name) != m {
		return false
	}
	c.vouchLocked(ctx, m)
	return true
}

func (c *Clusters[T]) vouchLocked(ctx context.Context, m *member[T]) {
	for _, v := range m.vouchers {
		if v.ctx.Done() == ctx.Done() {
			return // they end together
		}
	}
	v := &voucher{ctx: ctx}
	v.stop = context.AfterFunc(ctx, func() { c.withdraw(m, v) })
	m.vouchers = append(m.vouchers, v)
}

// withdraw has m leave if the voucher was the last.
func (c *Clusters[T]) withdraw(m *member[T], v *voucher) {
	c.mu.Lock()
	m.vouchers = slices.DeleteFunc(m.vouchers, func(other *voucher) bool { return other == v })
	last := len(m.vouchers) == 0
	c.mu.Unlock()
	if last {
		m.leave(context.Cause(v.ctx))
	}
}

// vouchedFor tells whether a context lives that vouches for m.
func (m *member[T]) vouchedFor() bool {
	return slices.ContainsFunc(m.vouchers, func(v *voucher) bool { return v.ctx.Err() == nil })
}

// start makes m run after its predecessor, which may be nil, and engages it.
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
		c.report(m, cause, "Cluster is no longer there")
		return
	}
	if err != nil && !errors.Is(err, m.ctx.Err()) {
		c.report(m, err, "Cluster failed to stop cleanly")
	}
}

// awaitStop waits for m, which has been told to leave, as long as it may take.
func (c *Clusters[T]) awaitStop(m *member[T]) {
	limit := time.NewTimer(c.waitCacheTimeout())
	defer limit.Stop()
	select {
	case <-m.stopped:
	case <-limit.C:
		c.report(m, fmt.Errorf("not stopped within %v", c.waitCacheTimeout()), "Cluster does not stop, another of its name starts beside it")
	}
}

// engage waits for the cluster to become ready and tells of it.
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

// prepare waits for the cluster's caches and indexes them.
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

// inTime calls a function that may not heed its context, and waits for it no
// longer than the context lives and WaitCacheTimeout allows.
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
