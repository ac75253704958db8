// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Package steps is a library for reconcilers that consist of steps. Its API has
// types of sigs.k8s.io/multicluster-runtime.
package steps

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	mcbuilder "sigs.k8s.io/multicluster-runtime/pkg/builder"
	"sigs.k8s.io/multicluster-runtime/pkg/clusters"
	mccontroller "sigs.k8s.io/multicluster-runtime/pkg/controller"
	mchandler "sigs.k8s.io/multicluster-runtime/pkg/handler"
	mcmanager "sigs.k8s.io/multicluster-runtime/pkg/manager"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"
	mcsource "sigs.k8s.io/multicluster-runtime/pkg/source"
)

// Step is one step for an object of a type.
type Step[object client.Object] interface {
	Process(ctx context.Context, cl cluster.Cluster, req mcreconcile.Request, obj object) error
}

// Func is a function that implements Step.
type Func[object client.Object] func(ctx context.Context, cl cluster.Cluster, req mcreconcile.Request, obj object) error

// Process implements Step.
func (f Func[object]) Process(ctx context.Context, cl cluster.Cluster, req mcreconcile.Request, obj object) error {
	return f(ctx, cl, req, obj)
}

// Lifecycle runs steps, one after the other.
type Lifecycle[object client.Object] struct {
	manager mcmanager.Manager
	empty   func() object
	steps   []Step[object]
}

// New returns a Lifecycle. Empty returns a new object to read into.
func New[object client.Object](mgr mcmanager.Manager, empty func() object, steps ...Step[object]) *Lifecycle[object] {
	return &Lifecycle[object]{manager: mgr, empty: empty, steps: steps}
}

// SetUp adds a controller that runs the steps.
func (l *Lifecycle[object]) SetUp(name string, opts mccontroller.Options, forOpts ...mcbuilder.ForOption) (mccontroller.Controller, error) {
	return mcbuilder.ControllerManagedBy(l.manager).Named(name).
		For(l.empty(), forOpts...).
		WithOptions(opts).
		Build(l)
}

// Also runs the steps for the objects that another kind of object maps to.
func Also[other client.Object](c mccontroller.Controller, kind other, handle mchandler.TypedEventHandlerFunc[other, mcreconcile.Request]) error {
	return c.MultiClusterWatch(mcsource.Kind(kind, handle))
}

// Reconcile implements mcreconcile.Reconciler.
func (l *Lifecycle[object]) Reconcile(ctx context.Context, req mcreconcile.Request) (reconcile.Result, error) {
	cl, err := l.manager.GetCluster(ctx, req.ClusterName)
	if err != nil {
		return reconcile.Result{}, err
	}
	obj := l.empty()
	if err := cl.GetClient().Get(ctx, req.NamespacedName, obj); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	for i, step := range l.steps {
		if err := step.Process(ctx, cl, req, obj); err != nil {
			return reconcile.Result{}, fmt.Errorf("step %d in %s: %w", i, req.ClusterName, err)
		}
	}
	return reconcile.Result{}, nil
}

// Provider engages clusters that exist already.
type Provider struct {
	clusters.Clusters[cluster.Cluster]
	Members map[multicluster.ClusterName]cluster.Cluster
}

var (
	_ multicluster.Provider         = &Provider{}
	_ multicluster.ProviderRunnable = &Provider{}
)

// NewProvider returns a provider of the clusters.
func NewProvider(members map[multicluster.ClusterName]cluster.Cluster) *Provider {
	return &Provider{Clusters: clusters.New[cluster.Cluster](), Members: members}
}

// Start implements multicluster.ProviderRunnable.
func (p *Provider) Start(ctx context.Context, aware multicluster.Aware) error {
	for name, cl := range p.Members {
		if err := p.Add(ctx, name, cl, aware); err != nil {
			return err
		}
	}
	<-ctx.Done()
	return nil
}
