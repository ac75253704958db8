// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Package context carries the name of the cluster that a reconcile is about in
// its context.
//
// Controllers built with pkg/mc/controller put it there, so code deep in a
// reconciler can ask [ClusterFrom] and needs no further argument.
package context

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
	mcreconcile "github.com/rollcall-dev/rollcall/pkg/mc/reconcile"
)

type clusterKey struct{}

// WithCluster returns a context that carries the cluster's name.
func WithCluster(ctx context.Context, cluster multicluster.ClusterName) context.Context {
	return context.WithValue(ctx, clusterKey{}, cluster)
}

// ClusterFrom returns the name of the cluster that the context carries, and
// whether it carries one. The local cluster's name is empty, so only the
// second value tells "the local cluster" from "none".
func ClusterFrom(ctx context.Context) (multicluster.ClusterName, bool) {
	cluster, ok := ctx.Value(clusterKey{}).(multicluster.ClusterName)
	return cluster, ok
}

// ReconcilerWithClusterInContext lifts a reconciler written for one cluster:
// it is given the request within the cluster, and finds the cluster's name in
// its context.
func ReconcilerWithClusterInContext(r reconcile.Reconciler) mcreconcile.Reconciler {
	return mcreconcile.Func(func(ctx context.Context, req mcreconcile.Request) (reconcile.Result, error) {
		return r.Reconcile(WithCluster(ctx, req.ClusterName), req.Request)
	})
}
