// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Package context stores the name of a cluster in a context.
//
// The context of each reconcile and each event handler has the name of the
// cluster, so any function that they call can get it with [ClusterFrom]:
//
//	name, ok := mccontext.ClusterFrom(ctx)
package context

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
	mcreconcile "github.com/rollcall-dev/rollcall/pkg/mc/reconcile"
)

type clusterKey struct{}

// WithCluster returns a context with the name of the cluster.
func WithCluster(ctx context.Context, cluster multicluster.ClusterName) context.Context {
	return context.WithValue(ctx, clusterKey{}, cluster)
}

// ClusterFrom returns the name of the cluster in the context, and whether there is
// one. The name of the local cluster is empty.
func ClusterFrom(ctx context.Context) (multicluster.ClusterName, bool) {
	cluster, ok := ctx.Value(clusterKey{}).(multicluster.ClusterName)
	return cluster, ok
}

// ReconcilerWithClusterInContext adapts a reconciler that was written for one
// cluster. Its context has the name of the cluster.
func ReconcilerWithClusterInContext(r reconcile.Reconciler) mcreconcile.Reconciler {
	return mcreconcile.Func(func(ctx context.Context, req mcreconcile.Request) (reconcile.Result, error) {
		return r.Reconcile(WithCluster(ctx, req.ClusterName), req.Request)
	})
}
