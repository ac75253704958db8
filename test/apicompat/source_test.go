// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package apicompat

import (
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	mchandler "github.com/rollcall-dev/rollcall/pkg/mc/handler"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
	mcreconcile "github.com/rollcall-dev/rollcall/pkg/mc/reconcile"
	mcsource "github.com/rollcall-dev/rollcall/pkg/mc/source"
)

var (
	_ func(multicluster.ClusterName, cluster.Cluster) bool      = mcsource.ClusterFilterFunc(nil)
	_ *mcsource.TypedSource[client.Object, mcreconcile.Request] = (*mcsource.Source)(nil)
)

type typedSource[object client.Object, request mcreconcile.ClusterAware[request]] interface {
	ForCluster(multicluster.ClusterName, cluster.Cluster) (source.TypedSource[request], bool, error)
}

type typedSyncingSource[object client.Object, request mcreconcile.ClusterAware[request]] interface {
	mcsource.TypedSource[object, request]
	SyncingForCluster(multicluster.ClusterName, cluster.Cluster) (source.TypedSyncingSource[request], bool, error)
	WithProjection(func(cluster.Cluster, object) (object, error)) mcsource.TypedSyncingSource[object, request]
	WithClusterFilter(mcsource.ClusterFilterFunc) mcsource.TypedSyncingSource[object, request]
}

func _[object client.Object, request mcreconcile.ClusterAware[request]]() {
	type (
		handlerFunc      = mchandler.TypedEventHandlerFunc[object, mcreconcile.Request]
		typedHandlerFunc = mchandler.TypedEventHandlerFunc[object, request]
		predicates       = predicate.TypedPredicate[object]
	)
	is[func(object, handlerFunc, ...predicates) mcsource.SyncingSource[object]](mcsource.Kind[object])
	is[func(object, typedHandlerFunc, ...predicates) mcsource.TypedSyncingSource[object, request]](mcsource.TypedKind[object, request])

	is[mcsource.TypedSource[object, request]](typedSource[object, request](nil))
	is[typedSource[object, request]](mcsource.TypedSource[object, request](nil))
	is[mcsource.TypedSyncingSource[object, request]](typedSyncingSource[object, request](nil))
	is[typedSyncingSource[object, request]](mcsource.TypedSyncingSource[object, request](nil))
	is[mcsource.SyncingSource[object]](typedSyncingSource[object, mcreconcile.Request](nil))
	is[typedSyncingSource[object, mcreconcile.Request]](mcsource.SyncingSource[object](nil))
}
