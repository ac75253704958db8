// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Package sources defines optional methods of sources, which controllers use.
package sources

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
)

// Diagnosed is a source of one cluster that can find out why it has not synced.
type Diagnosed interface {
	// Diagnose calls report with each reason that it finds, until the context
	// ends. It is called after Start, runs concurrently with WaitForSync, and must
	// not disturb the source.
	Diagnose(ctx context.Context, report func(error))
}

// ListErrorReporter is an informer that reports why it cannot list its objects.
type ListErrorReporter interface {
	// OnListError calls the function with each error that the API server responds
	// with to a list because the kind is missing or forbidden, until the context ends.
	// The error of the last list is reported at once. The function may be called from
	// any goroutine and must not block.
	OnListError(ctx context.Context, report func(error))
}

// Awaited is a source of a controller's Watch with goroutines that call user code.
type Awaited interface {
	// Wait returns when all goroutines of Start have ended, after their context
	// has ended. The controller calls it before its own Start returns.
	Wait()
}

// ClusterWatcher is a source of a controller's Watch that is notified of the
// engagements of the controller, in order. The methods must not block.
type ClusterWatcher interface {
	// ClusterEngaged is called with the context of each engagement, which has a
	// multicluster.Engagement.
	ClusterEngaged(ctx context.Context, name multicluster.ClusterName, cl cluster.Cluster)
	// ClusterDisengaged is called when an engagement has ended and the requests of
	// the cluster have been dropped.
	ClusterDisengaged(name multicluster.ClusterName, cl cluster.Cluster)
}
