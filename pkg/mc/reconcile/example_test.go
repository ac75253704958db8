// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile_test

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
	mcreconcile "github.com/rollcall-dev/rollcall/pkg/mc/reconcile"
)

func ExampleFunc() {
	reconciler := mcreconcile.Func(func(_ context.Context, req mcreconcile.Request) (reconcile.Result, error) {
		fmt.Printf("reconciling %s in cluster %s\n", req.NamespacedName, req.ClusterName)
		return reconcile.Result{}, nil
	})

	_, err := reconciler.Reconcile(context.Background(), mcreconcile.Request{
		ClusterName: "eu",
		Request:     reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "default", Name: "web"}},
	})
	fmt.Println("error:", err)
	// Output:
	// reconciling default/web in cluster eu
	// error: <nil>
}

func ExampleRequest_String() {
	req := mcreconcile.Request{
		ClusterName: "eu",
		Request:     reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "default", Name: "web"}},
	}
	fmt.Println(req)
	fmt.Println(req.WithCluster("us"))
	fmt.Println(req.WithCluster("")) // the local cluster
	// Output:
	// cluster://eu/default/web
	// cluster://us/default/web
	// default/web
}

// Any comparable type can be a request.
func ExampleWithCluster() {
	type scan = mcreconcile.WithCluster[string]
	fmt.Println(scan{ClusterName: "eu", Request: "images"})
	// Output: cluster://eu/images
}

// Requests for a removed cluster do not fail. The builder wraps reconcilers by
// default.
func ExampleNewClusterNotFoundWrapper() {
	reconciler := mcreconcile.NewClusterNotFoundWrapper(mcreconcile.Func(
		func(_ context.Context, req mcreconcile.Request) (reconcile.Result, error) {
			return reconcile.Result{}, multicluster.NotFoundError(req.ClusterName) // as manager.GetCluster does
		}))

	_, err := reconciler.Reconcile(context.Background(), mcreconcile.Request{ClusterName: "removed"})
	fmt.Println("error:", err)
	// Output: error: <nil>
}
