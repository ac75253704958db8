// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package builder_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/rollcall-dev/rollcall/internal/exampletest"
	mcbuilder "github.com/rollcall-dev/rollcall/pkg/mc/builder"
	mchandler "github.com/rollcall-dev/rollcall/pkg/mc/handler"
	mcmanager "github.com/rollcall-dev/rollcall/pkg/mc/manager"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
	mcreconcile "github.com/rollcall-dev/rollcall/pkg/mc/reconcile"
)

// setup returns a manager for the clusters eu-1, eu-2 and us-1 of a provider. Each
// has a Secret, which owns a ConfigMap.
func setup(t testing.TB) mcmanager.Manager {
	fleet := mctest.NewFleet(t, 4, mctest.Options{
		Objects: []client.Object{secret("token"), configMap("settings", owner("token", true))},
	})
	options := mcmanager.Options{}
	options.Metrics.BindAddress = "0"
	mgr, err := mcmanager.New(fleet.Cluster(0).Config(), &provider{servers: map[multicluster.ClusterName]*mctest.Cluster{
		"eu-1": fleet.Cluster(1), "eu-2": fleet.Cluster(2), "us-1": fleet.Cluster(3),
	}}, options)
	if err != nil {
		t.Fatal(err)
	}
	return mgr
}

// run runs the manager until it has reconciled n requests, and prints them.
func run(t testing.TB, mgr mcmanager.Manager, requests <-chan mcreconcile.Request, n int) {
	ctx, stop := context.WithCancel(context.Background())
	stopped := make(chan error)
	go func() { stopped <- mgr.Start(ctx) }()
	for range n {
		fmt.Println(<-requests)
	}
	stop()
	if err := <-stopped; err != nil {
		t.Fatal(err)
	}
}

func Example() {
	t, end := exampletest.New() // in a test: its own t
	defer end()
	mgr := setup(t)

	requests := make(chan mcreconcile.Request, 100)
	err := mcbuilder.ControllerManagedBy(mgr).
		For(&corev1.Secret{}).
		Owns(&corev1.ConfigMap{}).
		Complete(mcreconcile.Func(func(_ context.Context, req mcreconcile.Request) (reconcile.Result, error) {
			requests <- req
			return reconcile.Result{}, nil
		}))
	if err != nil {
		t.Fatal(err)
	}
	run(t, mgr, requests, 3)
	// Unordered output:
	// cluster://eu-1/default/token
	// cluster://eu-2/default/token
	// cluster://us-1/default/token
}

// Only the clusters in Europe are watched.
func ExampleWithClusterFilter() {
	t, end := exampletest.New() // in a test: its own t
	defer end()
	mgr := setup(t)

	requests := make(chan mcreconcile.Request, 100)
	err := mcbuilder.ControllerManagedBy(mgr).
		Named("europe").
		Watches(&corev1.ConfigMap{}, mchandler.EnqueueRequestForObject,
			mcbuilder.WithClusterFilter(func(name multicluster.ClusterName, _ cluster.Cluster) bool {
				return strings.HasPrefix(name.String(), "eu-")
			})).
		Complete(mcreconcile.Func(func(_ context.Context, req mcreconcile.Request) (reconcile.Result, error) {
			requests <- req
			return reconcile.Result{}, nil
		}))
	if err != nil {
		t.Fatal(err)
	}
	run(t, mgr, requests, 2)
	// Unordered output:
	// cluster://eu-1/default/settings
	// cluster://eu-2/default/settings
}

// The local cluster is watched, not those of the provider.
func ExampleWithEngageWithLocalCluster() {
	t, end := exampletest.New() // in a test: its own t
	defer end()
	mgr := setup(t)

	requests := make(chan mcreconcile.Request, 100)
	err := mcbuilder.ControllerManagedBy(mgr).
		Named("local").
		For(&corev1.Secret{}, mcbuilder.WithEngageWithLocalCluster(true), mcbuilder.WithEngageWithProviderClusters(false)).
		Complete(mcreconcile.Func(func(_ context.Context, req mcreconcile.Request) (reconcile.Result, error) {
			requests <- req
			return reconcile.Result{}, nil
		}))
	if err != nil {
		t.Fatal(err)
	}
	run(t, mgr, requests, 1)
	// Output: default/token
}
