// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package multicluster

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
)

// ClusterName names a cluster within a Provider. The empty name is the local
// cluster, the one of the manager's own rest.Config.
type ClusterName string

// Empty reports whether the name is that of the local cluster.
func (clusterName ClusterName) Empty() bool {
	return clusterName == ""
}

// String returns the name as it is.
func (clusterName ClusterName) String() string {
	return string(clusterName)
}

// Aware is engaged with clusters as they come and go.
type Aware interface {
	// Engage starts what the implementation does for a cluster. It returns
	// without waiting for that to be ready: caches may still be syncing when it
	// returns. The context lives as long as the cluster is engaged; when it
	// ends, everything started for the cluster must stop. It carries the
	// Engagement of the cluster: an Aware that calls others passes it on.
	//
	// Engaging a name again replaces what was engaged under it before. Engage
	// may be called from any goroutine.
	Engage(context.Context, ClusterName, cluster.Cluster) error
}

// Provider finds clusters and keeps them connected. All methods may be called
// from any goroutine.
type Provider interface {
	// Get returns the engaged cluster of that name. It neither blocks nor
	// connects. The error is ErrClusterNotFound (by errors.Is) if there is no
	// such cluster, and also ErrClusterNotReady if the provider knows the
	// cluster but has not engaged it.
	Get(ctx context.Context, clusterName ClusterName) (cluster.Cluster, error)

	// IndexField adds a field index to the cache of every cluster, present and
	// future.
	IndexField(ctx context.Context, obj client.Object, field string, extractValue client.IndexerFunc) error
}

// ProviderRunnable is a Provider that finds clusters by itself once started.
// The multi-cluster manager starts it, so a program must not.
type ProviderRunnable interface {
	// Start finds clusters and engages them with the Aware until the context
	// ends. It blocks. Before it returns, it ends all that it started. The context
	// carries the manager's logger (log.FromContext) and its scheme (SchemeFrom).
	//
	// If Start returns an error, so does the manager's Start, unless the provider
	// is a RestartableProvider. After nil it is not started again.
	Start(context.Context, Aware) error
}

// RestartableProvider is a ProviderRunnable that can be started again after Start
// has returned an error. A provider that has closed a queue or has started a cache,
// which can be done once, is none.
type RestartableProvider interface {
	ProviderRunnable
	// CanRestart reports whether the manager may start the provider again after an
	// error, with backoff (1 s to 1 min). It never does after a TerminalError. A
	// provider that wraps another one returns what that returns.
	CanRestart() bool
}
