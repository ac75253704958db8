// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Package basic is the coordinator that engages every cluster with every
// component in this process.
package basic

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/rollcall-dev/rollcall/pkg/mc/internal/identity"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
)

// Coordinator engages every cluster with every component once, whichever of the
// two comes first. All methods may be called from any goroutine.
type Coordinator struct {
	mu         sync.Mutex // guards what follows; not held while a component is called
	components []*component
	engaged    map[multicluster.ClusterName]*engagement
}

// component is an Aware that clusters are engaged with.
type component struct {
	multicluster.Aware
	// late has the names that AddAware still has to engage with the component.
	// Engage leaves them to it. The coordinator's lock guards it.
	late map[multicluster.ClusterName]struct{}
}

// engagement is a cluster that is engaged under a name.
type engagement struct {
	ctx     context.Context // the provider's: ends when the cluster is disengaged
	cluster cluster.Cluster
}

func (e *engagement) equal(other *engagement) bool {
	return e != nil && identity.Same(e.cluster, other.cluster) && identity.Same(e.ctx, other.ctx)
}

// New returns a coordinator without components and clusters.
func New() *Coordinator {
	return &Coordinator{engaged: map[multicluster.ClusterName]*engagement{}}
}

// AddAware adds a component and engages it with all clusters that are engaged
// now. A failure to do so is logged; the component is engaged with that cluster
// again only when the provider engages it again.
func (c *Coordinator) AddAware(r multicluster.Aware) {
	added := &component{Aware: r, late: map[multicluster.ClusterName]struct{}{}}
	c.mu.Lock()
	c.components = append(c.components, added)
	names := slices.Collect(maps.Keys(c.engaged))
	for _, name := range names {
		added.late[name] = struct{}{}
	}
	c.mu.Unlock()

	for _, name := range names {
		c.engageLate(added, name)
	}
}

// engageLate engages the component with the cluster of that name, and with those
// that replace it during the calls, so that it gets them in order.
func (c *Coordinator) engageLate(r *component, name multicluster.ClusterName) {
	for e := c.nextLate(r, name, nil); e != nil; e = c.nextLate(r, name, e) {
		if err := r.Engage(e.ctx, name, e.cluster); err != nil {
			log.FromContext(e.ctx).Error(err, "Failed to engage cluster with component, which gets it only when the cluster is re-engaged",
				"cluster", name, "component", fmt.Sprintf("%T", r.Aware))
		}
	}
}

// nextLate returns the engagement of that name if it is another than the last
// one. Otherwise it returns nil, and leaves the name to Engage from then on.
func (c *Coordinator) nextLate(r *component, name multicluster.ClusterName, last *engagement) *engagement {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.engaged[name]; e != nil && e != last && e.ctx.Err() == nil {
		return e
	}
	delete(r.late, name)
	return nil
}

// Engage engages the cluster with all components, present and future, until the
// context ends. It calls all of them, also after one has failed, and joins the
// errors. Where AddAware is engaging the name with a component, it does so with
// this cluster next: Engage does not wait for that. Engage does nothing if the
// context has ended.
func (c *Coordinator) Engage(ctx context.Context, name multicluster.ClusterName, cl cluster.Cluster) error {
	var errs []error
	for _, r := range c.add(name, &engagement{ctx: ctx, cluster: cl}) {
		errs = append(errs, r.Engage(ctx, name, cl))
	}
	return errors.Join(errs...)
}

// add adds an engagement until its context ends, and returns the components for
// Engage to call.
func (c *Coordinator) add(name multicluster.ClusterName, e *engagement) (components []multicluster.Aware) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e.ctx.Err() != nil {
		return nil
	}
	if !c.engaged[name].equal(e) {
		c.engaged[name] = e
		context.AfterFunc(e.ctx, func() { c.remove(name, e) })
	}
	for _, r := range c.components {
		if _, late := r.late[name]; !late {
			components = append(components, r.Aware)
		}
	}
	return components
}

func (c *Coordinator) remove(name multicluster.ClusterName, e *engagement) {
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
