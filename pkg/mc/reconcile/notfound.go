// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/rollcall-dev/rollcall/pkg/mc/internal/parking"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
)

// ClusterNotFoundWrapper handles the cluster errors of another reconciler.
//
// multicluster.ErrClusterNotFound counts as success: the cluster was removed, so
// there is nothing to do. This is logged at V(1). If the cluster is added again,
// its initial list enqueues its objects.
//
// After multicluster.ErrClusterNotReady, the controller enqueues the request
// again when the cluster is engaged, and after 10 minutes at the latest.
type ClusterNotFoundWrapper[request comparable] struct {
	wrapped reconcile.TypedReconciler[request]
}

const (
	// parkedRetry is the delay after which a request that waits for a cluster is
	// retried anyway: another replica may be engaged with the cluster.
	parkedRetry = 10 * time.Minute

	// notReadyRetry is the delay after which a request is retried that cannot wait
	// for the engagement of the cluster.
	notReadyRetry = 30 * time.Second
)

// NewClusterNotFoundWrapper wraps a reconciler in a ClusterNotFoundWrapper.
func NewClusterNotFoundWrapper[request comparable](w reconcile.TypedReconciler[request]) reconcile.TypedReconciler[request] {
	return &ClusterNotFoundWrapper[request]{wrapped: w}
}

// Reconcile calls the wrapped reconciler.
func (r *ClusterNotFoundWrapper[request]) Reconcile(ctx context.Context, req request) (reconcile.Result, error) {
	result, err := r.wrapped.Reconcile(ctx, req)
	switch {
	case errors.Is(err, multicluster.ErrClusterNotReady):
		if name, ok := multicluster.NotReadyCluster(err); ok && parking.Park(ctx, name) {
			return reconcile.Result{RequeueAfter: parkedRetry}, nil
		}
		return reconcile.Result{RequeueAfter: notReadyRetry}, nil
	case errors.Is(err, multicluster.ErrClusterNotFound):
		// The log line also helps to find a misspelt name.
		log.FromContext(ctx).V(1).Info("Dropped request: the reconciler needs a cluster that does not exist", "request", req, "error", err.Error())
		return reconcile.Result{}, nil
	default:
		return result, err
	}
}

// String returns the name of the wrapped reconciler.
func (r *ClusterNotFoundWrapper[request]) String() string {
	if s, ok := r.wrapped.(fmt.Stringer); ok {
		return s.String()
	}
	return fmt.Sprintf("%T", r.wrapped)
}
