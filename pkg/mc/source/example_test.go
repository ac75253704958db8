// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/rollcall-dev/rollcall/internal/exampletest"
	mccontroller "github.com/rollcall-dev/rollcall/pkg/mc/controller"
	mchandler "github.com/rollcall-dev/rollcall/pkg/mc/handler"
	mcmanager "github.com/rollcall-dev/rollcall/pkg/mc/manager"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
	mcreconcile "github.com/rollcall-dev/rollcall/pkg/mc/reconcile"
	mcsource "github.com/rollcall-dev/rollcall/pkg/mc/source"
)

// run adds the sources to a controller, engages it with a cluster "eu", which has
// a ConfigMap "greeting", and prints the first request.
func run(t testing.TB, name string, watch func(mccontroller.Controller) error) {
	options := mcmanager.Options{}
	options.Metrics.BindAddress = "0"
	mgr, err := mcmanager.New(mctest.New(t).Config(), nil, options)
	if err != nil {
		t.Fatal(err)
	}
	requests := make(chan mcreconcile.Request, 100)
	c, err := mccontroller.New(name, mgr, mccontroller.Options{
		Reconciler: mcreconcile.Func(func(_ context.Context, req mcreconcile.Request) (reconcile.Result, error) {
			requests <- req
			return reconcile.Result{}, nil
		}),
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := watch(c); err != nil {
		t.Fatal(err)
	}

	eu, err := cluster.New(mctest.New(t, mctest.Options{Objects: []client.Object{configMap("greeting")}}).Config())
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	stopped := make(chan error)
	go func() { stopped <- eu.Start(ctx) }()
	go func() { stopped <- mgr.Start(ctx) }()
	if err := mgr.Engage(ctx, "eu", eu); err != nil { // a provider does this
		t.Fatal(err)
	}
	req := <-requests
	fmt.Printf("cluster %q, object %q\n", req.ClusterName, req.Name)
	stop()
	for range 2 {
		if err := <-stopped; err != nil {
			t.Fatal(err)
		}
	}
}

// Most programs use the builder instead.
func ExampleKind() {
	t, end := exampletest.New() // in a test: its own t
	defer end()
	run(t, "configmaps", func(c mccontroller.Controller) error {
		return c.MultiClusterWatch(mcsource.Kind(&corev1.ConfigMap{}, mchandler.TypedEnqueueRequestForObject[*corev1.ConfigMap]()))
	})
	// Output: cluster "eu", object "greeting"
}

// A controller that reconciles clusters.
func ExampleClusterLifecycle() {
	t, end := exampletest.New() // in a test: its own t
	defer end()
	run(t, "clusters", func(c mccontroller.Controller) error {
		return c.Watch(mcsource.ClusterLifecycle())
	})
	// Output: cluster "eu", object ""
}
