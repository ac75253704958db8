// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	mcbuilder "github.com/rollcall-dev/rollcall/pkg/mc/builder"
	"github.com/rollcall-dev/rollcall/pkg/mc/clusters"
	mccontext "github.com/rollcall-dev/rollcall/pkg/mc/context"
	mccontroller "github.com/rollcall-dev/rollcall/pkg/mc/controller"
	mchandler "github.com/rollcall-dev/rollcall/pkg/mc/handler"
	mcmanager "github.com/rollcall-dev/rollcall/pkg/mc/manager"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
	mcreconcile "github.com/rollcall-dev/rollcall/pkg/mc/reconcile"
	mcsource "github.com/rollcall-dev/rollcall/pkg/mc/source"
)

// Labels of ConfigMaps.
const (
	labelShare = "example.rollcall.dev/share" // "true": copied to all other clusters
	labelCopy  = "example.rollcall.dev/copy"  // "true": a copy
)

// copier keeps copies of one cluster's shared ConfigMaps in all other clusters.
// Its requests name a cluster, and no object.
type copier struct {
	mgr     mcmanager.Manager
	from    multicluster.ClusterName
	engaged *clusters.Registry[cluster.Cluster]
}

func setup(mgr mcmanager.Manager, from multicluster.ClusterName) error {
	c := &copier{mgr: mgr, from: from, engaged: clusters.NewRegistry[cluster.Cluster]()}
	if err := mgr.Add(c.engaged); err != nil {
		return err
	}
	return mcbuilder.ControllerManagedBy(mgr).
		Named("copier").
		WatchesRawSource(mcsource.ClusterLifecycle()). // a new cluster gets its copies
		Watches(&corev1.ConfigMap{}, func(multicluster.ClusterName, cluster.Cluster) mchandler.EventHandler {
			return mchandler.TypedEnqueueRequestsFromMapFuncWithClusterPreservation(c.requestsFor)
		}).
		// With two or more workers, a hanging cluster does not block the others.
		WithOptions(mccontroller.Options{MaxConcurrentReconciles: 4}).
		Complete(c)
}

// requestsFor maps a copy to its cluster, and a shared ConfigMap to all clusters.
func (c *copier) requestsFor(ctx context.Context, object client.Object) []mcreconcile.Request {
	cluster, _ := mccontext.ClusterFrom(ctx)
	switch labels := object.GetLabels(); {
	case cluster != c.from && labels[labelCopy] == "true":
		return []mcreconcile.Request{{ClusterName: cluster}}
	case cluster == c.from && labels[labelShare] == "true":
		var requests []mcreconcile.Request
		for _, name := range c.engaged.ClusterNames() {
			requests = append(requests, mcreconcile.Request{ClusterName: name})
		}
		return requests
	}
	return nil
}

// Reconcile creates, updates and deletes the copies in the request's cluster.
func (c *copier) Reconcile(ctx context.Context, req mcreconcile.Request) (ctrl.Result, error) {
	if req.ClusterName == c.from {
		return ctrl.Result{}, nil
	}
	source, err := c.mgr.GetCluster(ctx, c.from) // if it is still connecting, the request waits for it
	if err != nil {
		return ctrl.Result{}, err
	}
	target, err := c.mgr.GetCluster(ctx, req.ClusterName)
	if err != nil {
		return ctrl.Result{}, err
	}
	var shared, copies corev1.ConfigMapList
	if err := source.GetClient().List(ctx, &shared, client.MatchingLabels{labelShare: "true"}); err != nil {
		return ctrl.Result{}, err
	}
	if err := target.GetClient().List(ctx, &copies, client.MatchingLabels{labelCopy: "true"}); err != nil {
		return ctrl.Result{}, err
	}

	obsolete := map[client.ObjectKey]*corev1.ConfigMap{}
	for i := range copies.Items {
		obsolete[client.ObjectKeyFromObject(&copies.Items[i])] = &copies.Items[i]
	}
	var errs []error
	for i := range shared.Items {
		want := &shared.Items[i]
		delete(obsolete, client.ObjectKeyFromObject(want))
		have := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: want.Namespace, Name: want.Name}}
		_, err := controllerutil.CreateOrUpdate(ctx, target.GetClient(), have, func() error {
			metav1.SetMetaDataLabel(&have.ObjectMeta, labelCopy, "true")
			have.Data = want.Data
			return nil
		})
		errs = append(errs, err)
	}
	for _, copied := range obsolete {
		errs = append(errs, client.IgnoreNotFound(target.GetClient().Delete(ctx, copied)))
	}
	return ctrl.Result{}, errors.Join(errs...)
}
