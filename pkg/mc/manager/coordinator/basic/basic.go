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
// two comes first, once each. All methods may be called from any goroutine.
type Coordinator struct {
	mu      sync.Mutex // guards what follows; not held while a component is called
	aware   []*component
	engaged map[multicluster.ClusterName]*engagement
}

// component is what clusters are engaged with.
type component struct {
	multicluster.Aware
	// late has the names of which AddAware tells the component, those that come
	// next under such a name included. The coordinator's lock guards it.
	late map[multicluster.ClusterName]struct{}
}

type engagement struct {
	ctx     context.Context // the provider's, ends when the cluster leaves
	cluster cluster.Cluster
}

// same tells whether an engagement is another, told of again.
func (e *engagement) same(as *engagement) bool {
	return e != nil && identity.Same(e.cluster, as.cluster) && identity.Same(e.ctx, as.ctx)
}

// New returns a coordinator without components and clusters.
func New() *Coordinator {
	return &Coordinator{engaged: map[multicluster.ClusterName]*engagement{}}
}

// AddAware adds a component and engages the clusters with it that are there
// already, and those that take their names meanwhile. Should it fail to engage
// one of those, that is logged, and it hears of that cluster again only when the
// cluster is engaged anew.
func (c *Coordinator) AddAware(r multicluster.Aware) {
	added := &component{Aware: r, late: map[multicluster.ClusterName]struct{}{}}
	c.mu.Lock()
	c.aware = append(c.aware, added)
	names := slices.Collect(maps.Keys(c.engaged))
	for _, name := range names {
		added.late[name] = struct{}{}
	}
	c.mu.Unlock()

	for _, name := range names {
		c.engageLate(added, name)
	}
}

// engageLate engages the cluster of that name with a component that was added
// after it, and then those that have come under the name since: told by
// somebody else, the component might hear of them in the wrong order.
func (c *Coordinator) engageLate(r *component, name multicluster.ClusterName) {
	for e := c.nextLate(r, name, nil); e != nil; e = c.nextLate(r, name, e) {
		if err := r.Engage(e.ctx, name, e.cluster); err != nil {
			log.FromContext(e.ctx).Error(err, "Failed to engage a cluster with a component added late", "cluster", name)
		}
	}
}

// nextLate returns what a component is to be told of a name next. If that is
// nothing but what it was told last, it returns nil, and Engage tells it from
// then on.
func (c *Coordinator) nextLate(r *component, name multicluster.ClusterName, told *engagement) *engagement {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.engaged[name]; e != nil && e != told && e.ctx.Err() == nil {
		return e
	}
	delete(r.late, name)
	return nil
}

// Engage engages the cluster with all components, those there now and those
// added while the context lives. All are told, also after one has failed; the
// errors are joined. A component that is just being added, and is told of
// another cluster of that name, hears of this one next: Engage does not wait
// for that. It does nothing if the context has ended.
func (c *Coordinator) Engage(ctx context.Context, name multicluster.ClusterName, cl cluster.Cluster) error {
	told, ok := c.enter(name, &engagement{ctx: ctx, cluster: cl})
	if !ok {
		return nil
	}
	var errs []error
	for _, r := range told {
		errs = append(errs, r.Engage(ctx, name, cl))
	}
	return errors.Join(errs...)
}

// enter notes an engagement until its context ends, and returns the components
// that Engage is to tell of it. It returns false if the context has ended.
func (c *Coordinator) enter(name multicluster.ClusterName, e *engagement) (told []multicluster.Aware, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e.ctx.Err() != nil {
		return nil, false
	}
	if !c.engaged[name].same(e) {
		c.engaged[name] = e
		context.AfterFunc(e.ctx, func() { c.forget(name, e) })
	}
	for _, r := range c.aware {
		if _, late := r.late[name]; !late {
			told = append(told, r.Aware)
		}
	}
	return told, true
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
