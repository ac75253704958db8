// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package context_test

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	mccontext "github.com/rollcall-dev/rollcall/pkg/mc/context"
	mcreconcile "github.com/rollcall-dev/rollcall/pkg/mc/reconcile"
)

// A reconciler that was written for one cluster runs in many.
func ExampleReconcilerWithClusterInContext() {
	single := reconcile.Func(func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
		name, _ := mccontext.ClusterFrom(ctx)
		fmt.Printf("reconciling %s in cluster %s\n", req, name)
		return reconcile.Result{}, nil
	})

	req := mcreconcile.Request{
		ClusterName: "eu",
		Request:     reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "default", Name: "web"}},
	}
	_, err := mccontext.ReconcilerWithClusterInContext(single).Reconcile(context.Background(), req)
	fmt.Println("error:", err)
	// Output:
	// reconciling default/web in cluster eu
	// error: <nil>
}
