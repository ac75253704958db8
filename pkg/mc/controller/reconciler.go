// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	mccontext "github.com/rollcall-dev/rollcall/pkg/mc/context"
	"github.com/rollcall-dev/rollcall/pkg/mc/internal/cachereads"
	"github.com/rollcall-dev/rollcall/pkg/mc/internal/parking"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
	mcreconcile "github.com/rollcall-dev/rollcall/pkg/mc/reconcile"
)

// clusterReconciler puts the cluster's name into the context of each reconcile, and
// a recorder of the caches that are read, and ends that context when the cluster is
// disengaged.
type clusterReconciler[request mcreconcile.ClusterAware[request]] struct {
	controller *mcController[request]
	reconciler reconcile.TypedReconciler[request]
}

func (r *clusterReconciler[request]) Reconcile(ctx context.Context, req request) (reconcile.Result, error) {
	r.controller.unpark(req)
	ctx = cachereads.With(mccontext.WithCluster(ctx, req.Cluster()))
	e, synced := r.controller.engagement(req.Cluster())
	ctx = parking.With(ctx, func(until multicluster.ClusterName) bool {
		return r.controller.park(req, e, until)
	})
	if e == nil {
		if r.controller.dropped(req) {
			return reconcile.Result{}, nil // the cluster was disengaged before this began
		}
		// The local cluster, or one that the controller is not engaged with: the
		// reconciler decides.
		return r.reconcile(ctx, req, nil)
	}
	defer e.shared.BeginWork()()
	if e.ctx.Err() != nil {
		return reconcile.Result{}, nil // the cluster is being disengaged
	}
	if !synced {
		// The request left the queue just before the cluster's requests were
		// held, or the queue is no clusterQueue.
		return reconcile.Result{RequeueAfter: time.Second}, nil
	}

	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(e.ctx, func() { cancel(fmt.Errorf("cluster %q was disengaged", e.name)) })()

	result, err := r.reconcile(ctx, req, e)
	if e.ctx.Err() != nil {
		// Nothing is requeued. If the cluster is engaged again, its first listing
		// enqueues the object again.
		if err != nil {
			log.FromContext(ctx).V(1).Info("Cluster disengaged during reconcile", "error", err.Error())
		}
		return reconcile.Result{}, nil
	}
	return result, err
}

// reconcile reconciles the request. If a cache was too old for it, it is enqueued
// again when the cache is fresh.
func (r *clusterReconciler[request]) reconcile(ctx context.Context, req request, e *engagement[request]) (reconcile.Result, error) {
	result, err := r.reconciler.Reconcile(ctx, req)
	if fresh, ok := cachereads.Fresh(err); ok {
		log.FromContext(ctx).V(1).Info("Reconcile waits for a cache", "error", err.Error())
		return r.controller.await(req, e, fresh), nil
	}
	return result, err
}

func (r *clusterReconciler[request]) String() string {
	if s, ok := r.reconciler.(fmt.Stringer); ok {
		return s.String()
	}
	return fmt.Sprintf("%T", r.reconciler)
}
