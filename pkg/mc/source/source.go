// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
	mcreconcile "github.com/rollcall-dev/rollcall/pkg/mc/reconcile"
)

// Source returns the source of each cluster, for controllers of Requests.
type Source = TypedSource[client.Object, mcreconcile.Request]

// TypedSource returns the source of each cluster.
type TypedSource[object client.Object, request mcreconcile.ClusterAware[request]] interface {
	// ForCluster returns a new source for a cluster, and whether to watch the
	// cluster. If it is not to be watched, the source, which may be nil, is not
	// started. ForCluster is called again for each retry of a source that failed. It
	// may be called from any goroutine and must not block.
	ForCluster(multicluster.ClusterName, cluster.Cluster) (source.TypedSource[request], bool, error)
}

// SyncingSource is a TypedSyncingSource for controllers of Requests.
type SyncingSource[object client.Object] TypedSyncingSource[object, mcreconcile.Request]

// TypedSyncingSource is a TypedSource whose sources can be waited for until they
// have delivered their initial events.
type TypedSyncingSource[object client.Object, request mcreconcile.ClusterAware[request]] interface {
	TypedSource[object, request]

	// SyncingForCluster is ForCluster for a source with WaitForSync.
	SyncingForCluster(multicluster.ClusterName, cluster.Cluster) (source.TypedSyncingSource[request], bool, error)

	// WithProjection makes the source watch the object that the function returns
	// for each cluster: another representation of the same kind, such as metadata
	// only. It changes the source, which it returns, so it must be called before the
	// source is used.
	WithProjection(func(cluster.Cluster, object) (object, error)) TypedSyncingSource[object, request]

	// WithClusterFilter makes the source watch only the clusters for which the
	// function returns true; nil means all. The function is called when a cluster is
	// engaged, and again for each retry of a source that failed. WithClusterFilter
	// changes the source, which it returns, so it must be called before the source is
	// used.
	WithClusterFilter(ClusterFilterFunc) TypedSyncingSource[object, request]
}

// ClusterFilterFunc reports whether to watch a cluster.
type ClusterFilterFunc func(clusterName multicluster.ClusterName, cluster cluster.Cluster) bool
