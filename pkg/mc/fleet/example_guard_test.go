// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/rollcall-dev/rollcall/internal/exampletest"
	mcbuilder "github.com/rollcall-dev/rollcall/pkg/mc/builder"
	"github.com/rollcall-dev/rollcall/pkg/mc/fleet"
	mcmanager "github.com/rollcall-dev/rollcall/pkg/mc/manager"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
	mcreconcile "github.com/rollcall-dev/rollcall/pkg/mc/reconcile"
)

// pruneCopies deletes ConfigMaps in the cluster us that are not in the cluster eu.
type pruneCopies struct {
	manager mcmanager.Manager
	deleted chan string
}

func (r *pruneCopies) Reconcile(ctx context.Context, req mcreconcile.Request) (reconcile.Result, error) {
	if req.ClusterName != "fleet/us" || req.Namespace != "default" {
		return reconcile.Result{}, nil
	}
	eu, err := r.manager.GetCluster(ctx, "fleet/eu")
	if err != nil {
		return reconcile.Result{}, err
	}
	us, err := r.manager.GetCluster(ctx, req.ClusterName)
	if err != nil {
		return reconcile.Result{}, err
	}
	err = eu.GetClient().Get(ctx, req.NamespacedName, &corev1.ConfigMap{})
	if !apierrors.IsNotFound(err) {
		return reconcile.Result{}, err
	}
	copied := &corev1.ConfigMap{}
	copied.Namespace, copied.Name = req.Namespace, req.Name
	// If the cache of eu is too old, this is a StaleCacheError.
	if err := us.GetClient().Delete(ctx, copied); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	r.deleted <- req.Name
	return reconcile.Result{}, nil
}

// Nothing is deleted while the cluster eu does not respond.
func ExampleStaleCacheError() {
	t, end := exampletest.New() // in a test: its own t
	defer end()
	test := mctest.NewFleet(t, 3)
	if err := test.Cluster(2).Create(configMap("orphan")); err != nil {
		t.Fatal(err)
	}

	f, err := fleet.New(fleet.Options{
		Source:      twoClusters,
		Credentials: exampleMethod{"eu": test.Cluster(1), "us": test.Cluster(2)},
		Connection:  fleet.ConnectionOptions{MaxCacheAge: time.Minute},
	})
	if err != nil {
		t.Fatal(err)
	}
	mgr, err := mcmanager.New(test.Cluster(0).Config(), f, mctest.ManagerOptions())
	if err != nil {
		t.Fatal(err)
	}
	prune := &pruneCopies{manager: mgr, deleted: make(chan string, 1)}
	if err := mcbuilder.ControllerManagedBy(mgr).For(&corev1.ConfigMap{}).Complete(prune); err != nil {
		t.Fatal(err)
	}
	mctest.StartManager(t, mgr)
	fmt.Println("deleted", <-prune.deleted)
	// Output: deleted orphan
}

// dnsRecords are kept outside of Kubernetes.
type dnsRecords struct {
	manager mcmanager.Manager
	remove  func(name string) error
}

func (r *dnsRecords) Reconcile(ctx context.Context, req mcreconcile.Request) (reconcile.Result, error) {
	cl, err := r.manager.GetCluster(ctx, req.ClusterName)
	if err != nil {
		return reconcile.Result{}, err
	}
	err = cl.GetClient().Get(ctx, req.NamespacedName, &corev1.Service{})
	if !apierrors.IsNotFound(err) {
		return reconcile.Result{}, err
	}
	if err := fleet.CheckCaches(ctx); err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{}, r.remove(req.Name)
}

// A client cannot refuse what is done without one.
func ExampleCheckCaches() {
	var _ mcreconcile.Reconciler = &dnsRecords{}
	// Output:
}
