// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Package basic is the coordinator that engages every cluster with every
// component in this process.
package basic

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/rollcall-dev/rollcall/pkg/mc/internal/identity"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
)

// Coordinator engages every cluster with every component, whichever of the
// two comes first, once each. Where a component is added just as a name is
// engaged again, it may hear of the successor twice. All methods may be called from any goroutine.
type Coordinator struct {
	mu      sync.Mutex // guards what follows; not held while a component is called
	aware   []multicluster.Aware
	engaged map[multicluster.ClusterName]*engagement
}

type engagement struct {
	ctx       context.Context
	cluster   cluster.Cluster
	unhealthy bool
}

var (
	_ multicluster.BacklogReporter = &Coordinator{}
	_ multicluster.HealthAware     = &Coordinator{}
	_ multicluster.SyncWaiter      = &Coordinator{}
)

// New returns a coordinator without components and clusters.
func New() *Coordinator {
	return &Coordinator{engaged: map[multicluster.ClusterName]*engagement{}}
}

// AddAware adds a component and engages the clusters with it that are there
// already. Should it fail to engage one of those, that is logged, and it hears
// of that cluster again only when the cluster is engaged anew.
func (c *Coordinator) AddAware(r multicluster.Aware) {
	c.mu.Lock()
	c.aware = append(c.aware, r)
	engaged := maps.Clone(c.engaged)
	c.mu.Unlock()

	for name, e := range engaged {
		c.engageLate(r, name, e)
	}
}

// engageLate engages a cluster with a component that was added after it. Should
// the name be engaged again meanwhile, Engage tells the component too, maybe
// before it has heard of the cluster that was: then it is told of the successor
// once more, for that must be the last it hears of.
func (c *Coordinator) engageLate(r multicluster.Aware, name multicluster.ClusterName, e *engagement) {
	if c.current(name) != e {
		return
	}
	for e != nil {
		if err := r.Engage(e.ctx, name, e.cluster); err != nil {
			log.FromContext(e.ctx).Error(err, "Failed to engage a cluster with a component added late", "cluster", name)
		}
		c.tellLate(r, name, e)
		told := e
		if e = c.current(name); e == told {
			return
		}
	}
}

// tellLate tells a component that was added late how a cluster is, until that is
// how it is: SetClusterHealth may have told it of a change in between.
func (c *Coordinator) tellLate(r multicluster.Aware, name multicluster.ClusterName, e *engagement) {
	told := true // which a cluster is until it is said otherwise
	for healthy := !c.isUnhealthy(e); healthy != told; healthy = !c.isUnhealthy(e) {
		tell(r, name, e.cluster, healthy)
		told = healthy
	}
}

// current returns the engagement of that name, nil if it has ended.
func (c *Coordinator) current(name multicluster.ClusterName) *engagement {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.engaged[name]; e != nil && e.ctx.Err() == nil {
		return e
	}
	return nil
}

// Engage engages the cluster with all components, those there now and those
// added while the context lives. All are told, also after one has failed; the
// errors are joined.
func (c *Coordinator) Engage(ctx context.Context, name multicluster.ClusterName, cl cluster.Cluster) error {
	e := &engagement{ctx: ctx, cluster: cl}
	c.mu.Lock()
	c.engaged[name] = e
	aware := slices.Clone(c.aware)
	c.mu.Unlock()
	context.AfterFunc(ctx, func() { c.forget(name, e) })

	var errs []error
	for _, r := range aware {
		errs = append(errs, r.Engage(ctx, name, cl))
	}
	return errors.Join(errs...)
}

// SetClusterHealth tells all components that are multicluster.HealthAware,
// those there now and those added while the cluster is engaged.
func (c *Coordinator) SetClusterHealth(name multicluster.ClusterName, cl cluster.Cluster, healthy bool) {
	c.mu.Lock()
	e := c.engaged[name]
	if e == nil || !identity.Same(e.cluster, cl) {
		c.mu.Unlock()
		return
	}
	e.unhealthy = !healthy
	aware := slices.Clone(c.aware)
	c.mu.Unlock()

	for _, r := range aware {
		tell(r, name, cl, healthy)
	}
}

// WaitForClusterSync waits for all components that are multicluster.SyncWaiters.
func (c *Coordinator) WaitForClusterSync(ctx context.Context, name multicluster.ClusterName, cl cluster.Cluster) {
	for _, r := range c.components() {
		if waiter, ok := r.(multicluster.SyncWaiter); ok {
			waiter.WaitForClusterSync(ctx, name, cl)
		}
	}
}

// ClusterBacklog adds up what all components that are
// multicluster.BacklogReporters have queued.
func (c *Coordinator) ClusterBacklog(name multicluster.ClusterName) int {
	total := 0
	for _, r := range c.components() {
		if reporter, ok := r.(multicluster.BacklogReporter); ok {
			total += reporter.ClusterBacklog(name)
		}
	}
	return total
}

func (c *Coordinator) components() []multicluster.Aware {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.aware)
}

func (c *Coordinator) isUnhealthy(e *engagement) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return e.unhealthy
}

func tell(r multicluster.Aware, name multicluster.ClusterName, cl cluster.Cluster, healthy bool) {
	if aware, ok := r.(multicluster.HealthAware); ok {
		aware.SetClusterHealth(name, cl, healthy)
	}
}

func (c *Coordinator) forget(name multicluster.ClusterName, e *engagement) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.engaged[name] == e {
		delete(c.engaged, name)
	}
}

// Runnable returns nil: this coordinator has nothing to run.
func (c *Coordinator) Runnable() manager.Runnable {
	return nil
}
