// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package multicluster

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
)

// ClusterName names a cluster within a Provider. The empty name is the local
// cluster, the one that the manager itself was given a rest.Config for.
type ClusterName string

// Empty tells whether the name is that of the local cluster.
func (clusterName ClusterName) Empty() bool {
	return clusterName == ""
}

// String returns the name as it is.
func (clusterName ClusterName) String() string {
	return string(clusterName)
}

// Aware is told of clusters as they come and go.
type Aware interface {
	// Engage starts whatever the implementation does for a cluster. It returns
	// without waiting for that to be up: caches may still be filling when it
	// returns. The context lives as long as the cluster is engaged; when it
	// ends, everything started for the cluster must stop.
	//
	// Engaging a name again replaces what was engaged under it before. Engage
	// may be called from any goroutine.
	Engage(context.Context, ClusterName, cluster.Cluster) error
}

// Provider finds clusters and keeps them connected. All methods may be called
// from any goroutine.
type Provider interface {
	// Get returns the engaged cluster of that name. It neither blocks nor
	// connects. The error is ErrClusterNotFound (by errors.Is) where there is
	// no such cluster, and also ErrClusterNotReady where the provider knows of
	// the cluster but has not engaged it (yet, or for now).
	Get(ctx context.Context, clusterName ClusterName) (cluster.Cluster, error)

	// IndexField adds a field index to the cache of every cluster, those
	// there now and those to come. As with a single cluster, an index must be
	// added before the informer of its kind is started.
	IndexField(ctx context.Context, obj client.Object, field string, extractValue client.IndexerFunc) error
}

// ProviderRunnable is a Provider that finds clusters by itself once started.
// The multi-cluster manager starts it, so a program must not.
type ProviderRunnable interface {
	// Start finds clusters and engages them with the Aware until the context
	// ends. It blocks. All that it started has ended when it returns.
	//
	// After an error the manager starts the provider again, with backoff, unless
	// the error is a TerminalError: then the manager ends.
	Start(context.Context, Aware) error
}

// SyncWaiter is implemented by an Aware that reads much of a cluster when it is
// engaged.
type SyncWaiter interface {
	// WaitForClusterSync returns when what the Aware reads of the cluster at
	// first has been read, or the context ends, or the cluster is not engaged.
	WaitForClusterSync(ctx context.Context, clusterName ClusterName, cl cluster.Cluster)
}

// BacklogReporter is implemented by an Aware that has a queue.
type BacklogReporter interface {
	// ClusterBacklog returns the number of requests queued for a cluster. It
	// returns at once and may be called from any goroutine.
	ClusterBacklog(clusterName ClusterName) int
}

// HealthAware is implemented by an Aware that treats clusters differently
// while they do not answer.
type HealthAware interface {
	// SetClusterHealth says whether an engaged cluster answers. A cluster is
	// healthy until it is said otherwise. It returns at once, may be called from
	// any goroutine, and is without effect for a cluster that is not engaged.
	SetClusterHealth(clusterName ClusterName, cl cluster.Cluster, healthy bool)
}

// ChangeNotifier is implemented by clusters that know when what is known of
// them changes, such as the labels of a profile, without being engaged anew.
type ChangeNotifier interface {
	// NotifyChange calls the function after each change until the context ends.
	// The function must return at once.
	NotifyChange(ctx context.Context, changed func())
}

// StartLimiter is implemented by clusters that bound how many sources of events
// start at a time, over many clusters: a start lists all objects of a kind.
// Controllers ask each cluster that is one, so that a thousand of them are not
// listed at once when a replica becomes the leader or a controller is added
// late.
type StartLimiter interface {
	// LimitStart is called before each attempt to start a source in the cluster,
	// and returns when that may begin. It may block until then, but returns at
	// once while the cluster is being engaged under a limit already: whoever
	// engages it may wait for the source. It is called without locks, from many
	// goroutines.
	//
	// The function that it returns is called once, when the source has
	// synced, has failed, has been stopped, or is found to be kept from syncing.
	// Until that is found in a cluster that does not answer takes a while; the
	// limiter is free to let others start before.
	// The error is that of the context, which ends when the cluster leaves; after
	// any other the start counts as failed and is tried again later.
	LimitStart(ctx context.Context) (release func(), err error)
}
