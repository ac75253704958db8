// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Package reconcile holds the requests of a multi-cluster controller and the
// reconcilers that take them.
//
// A [Request] is controller-runtime's reconcile.Request together with the name
// of the cluster that the object lives in. A reconciler turns that name into a
// cluster through the manager and then works as with a single cluster:
//
//	mcreconcile.Func(func(ctx context.Context, req mcreconcile.Request) (reconcile.Result, error) {
//		cl, err := mgr.GetCluster(ctx, req.ClusterName)
//		if err != nil {
//			return reconcile.Result{}, err
//		}
//		pod := &corev1.Pod{}
//		err = cl.GetClient().Get(ctx, req.NamespacedName, pod)
//		…
//	})
//
// Any other comparable type can be a request as long as it is [ClusterAware];
// [WithCluster] makes one of a type that knows nothing of clusters.
package reconcile
