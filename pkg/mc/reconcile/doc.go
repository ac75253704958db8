// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Package reconcile defines the requests and reconcilers of multi-cluster
// controllers.
//
// A [Request] is controller-runtime's reconcile.Request and the name of the
// cluster of the object. A reconciler gets the cluster from the manager and then
// works as with a single cluster:
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
// Any comparable type that is [ClusterAware] can be a request. [WithCluster] adds
// the cluster to a type that has none.
package reconcile
