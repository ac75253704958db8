// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	mccontroller "github.com/rollcall-dev/rollcall/pkg/mc/controller"
	mchandler "github.com/rollcall-dev/rollcall/pkg/mc/handler"
	"github.com/rollcall-dev/rollcall/pkg/mc/queue"
	mcreconcile "github.com/rollcall-dev/rollcall/pkg/mc/reconcile"
	mcsource "github.com/rollcall-dev/rollcall/pkg/mc/source"
)

// A controller that watches the ConfigMaps of every cluster. Most programs make
// controllers with the builder.
func ExampleNew() {
	mgr, closeServers := exampleManager() // its provider has the cluster eu
	defer closeServers()
	ctx, stop := context.WithCancel(context.Background())
	defer stop()

	c, err := mccontroller.New("configmaps", mgr, mccontroller.Options{
		Reconciler: mcreconcile.Func(func(ctx context.Context, req mcreconcile.Request) (reconcile.Result, error) {
			cl, err := mgr.GetCluster(ctx, req.ClusterName)
			if err != nil {
				return reconcile.Result{}, err
			}
			configMap := &corev1.ConfigMap{}
			if err := cl.GetClient().Get(ctx, req.NamespacedName, configMap); err != nil {
				return reconcile.Result{}, client.IgnoreNotFound(err)
			}
			fmt.Printf("%s in cluster %s: %v\n", configMap.Name, req.ClusterName, configMap.Data)
			stop()
			return reconcile.Result{}, nil
		}),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	handler := mchandler.TypedEnqueueRequestForObject[client.Object]()
	if err := c.MultiClusterWatch(mcsource.TypedKind(client.Object(&corev1.ConfigMap{}), handler)); err != nil {
		fmt.Println(err)
		return
	}
	if err := mgr.Start(ctx); err != nil {
		fmt.Println(err)
	}
	// Output: settings in cluster eu: map[region:north]
}

// A controller with 16 workers, of which each cluster holds at most 4.
func ExampleFairQueue() {
	mgr, closeServers := exampleManager()
	defer closeServers()

	_, err := mccontroller.New("fair", mgr, mccontroller.Options{
		MaxConcurrentReconciles: 16,
		NewQueue:                mccontroller.FairQueue(queue.Options[mcreconcile.Request]{MaxPerCluster: 4}),
		Reconciler: mcreconcile.Func(func(context.Context, mcreconcile.Request) (reconcile.Result, error) {
			return reconcile.Result{}, nil
		}),
	})
	fmt.Println(err)
	// Output: <nil>
}
