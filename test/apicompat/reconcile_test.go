// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package apicompat

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
	mcreconcile "github.com/rollcall-dev/rollcall/pkg/mc/reconcile"
)

var (
	_ *reconcile.TypedFunc[mcreconcile.Request]       = (*mcreconcile.Func)(nil)
	_ *reconcile.TypedReconciler[mcreconcile.Request] = (*mcreconcile.Reconciler)(nil)

	_ = mcreconcile.Request{Request: reconcile.Request{}, ClusterName: multicluster.ClusterName("")}

	_ func(mcreconcile.Request) multicluster.ClusterName                      = mcreconcile.Request.Cluster
	_ func(mcreconcile.Request) string                                        = mcreconcile.Request.String
	_ func(mcreconcile.Request, multicluster.ClusterName) mcreconcile.Request = mcreconcile.Request.WithCluster
)

type clusterAware[request comparable] interface {
	comparable
	fmt.Stringer

	Cluster() multicluster.ClusterName
	WithCluster(multicluster.ClusterName) request
}

// A constraint and the one defined here meet each other.
func needsTheirs[request mcreconcile.ClusterAware[request]]() {}
func needsOurs[request clusterAware[request]]()               {}

func _[request mcreconcile.ClusterAware[request]]() { needsOurs[request]() }
func _[request clusterAware[request]]()             { needsTheirs[request]() }

func _[request comparable](zero request) {
	type (
		wrapper     = *mcreconcile.ClusterNotFoundWrapper[request]
		withCluster = mcreconcile.WithCluster[request]
		reconciler  = reconcile.TypedReconciler[request]
	)
	_ = withCluster{Request: zero, ClusterName: multicluster.ClusterName("")}
	needsTheirs[withCluster]()
	is[func(reconciler) reconciler](mcreconcile.NewClusterNotFoundWrapper[request])
	is[func(wrapper, context.Context, request) (reconcile.Result, error)](wrapper.Reconcile)
	is[func(wrapper) string](wrapper.String)
	is[func(withCluster) multicluster.ClusterName](withCluster.Cluster)
	is[func(withCluster) string](withCluster.String)
	is[func(withCluster, multicluster.ClusterName) withCluster](withCluster.WithCluster)
}
