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

// ClusterNotFoundWrapper passes requests to another reconciler and takes
// multicluster.ErrClusterNotFound from it for success: a request for a cluster
// that has left is done, which is logged at V(1). Should the cluster come back,
// its first listing enqueues its objects anew.
//
// A request that met multicluster.ErrClusterNotReady, because a cluster that it
// needs is not engaged yet, waits: the controller enqueues it again when that
// cluster is engaged, or after 10 minutes, should that never be.
type ClusterNotFoundWrapper[request comparable] struct {
	wrapped reconcile.TypedReconciler[request]
}

const (
	// parkedRetry is when a request that waits for a cluster is tried again
	// all the same: another replica may have been engaged with the cluster.
	parkedRetry = 10 * time.Minute

	// notReadyRetry is when a request is tried again that cannot wait for the
	// cluster's engagement, since nobody is there to tell of it.
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
		// As a rule the cluster has left. A name that was never right looks the same.
		log.FromContext(ctx).V(1).Info("Request that needs a cluster which does not exist is dropped", "request", req, "error", err.Error())
		return reconcile.Result{}, nil
	default:
		return result, err
	}
}

// String names the wrapped reconciler.
func (r *ClusterNotFoundWrapper[request]) String() string {
	if s, ok := r.wrapped.(fmt.Stringer); ok {
		return s.String()
	}
	return fmt.Sprintf("%T", r.wrapped)
}
