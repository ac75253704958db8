// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Package mc is the multi-cluster runtime: controller-runtime's manager, builder,
// controllers and reconcilers for all clusters of a provider. The package has
// aliases for the names that most programs need, as the root package of
// controller-runtime does:
//
//	mgr, err := mc.NewManager(mc.GetConfigOrDie(), provider, mc.Options{})
//	…
//	err = mc.NewControllerManagedBy(mgr).
//		For(&corev1.ConfigMap{}).
//		Complete(mcreconcile.Func(func(ctx context.Context, req mc.Request) (mc.Result, error) {
//			cl, err := mgr.GetCluster(ctx, req.ClusterName)
//			…
//		}))
//	…
//	err = mgr.Start(mc.SetupSignalHandler())
//
// The packages, in the order in which programs need them:
//
//   - multicluster: cluster names, providers, and the engagement contract.
//   - manager: the manager of the local cluster, with a provider.
//   - builder: builds controllers and webhooks.
//   - reconcile and context: requests with the name of their cluster.
//   - handler and source: events of all clusters.
//   - controller: the controllers that the builder builds.
//   - queue: the work queue of controllers, which is fair to clusters.
//   - fleet: connects and watches over the clusters of an inventory.
//   - clusters: for hand-written providers.
//   - mctest: API servers in memory, for tests with many clusters.
package mc
