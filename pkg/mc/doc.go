// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Package mc is the multi-cluster runtime: controller-runtime's manager,
// builder, controllers and reconcilers for every cluster that a provider knows.
// It gathers the names that most programs need, as the root package of
// controller-runtime does for one cluster:
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
// A tour of the packages, in the order in which one meets them:
//
//   - multicluster: how clusters are named, who finds them, who is told of them.
//   - manager: the local cluster's manager, together with a provider.
//   - builder: a controller, or the webhooks of a type, in a few lines.
//   - reconcile and context: requests that name their cluster.
//   - handler and source: events of every cluster, and where they come from.
//   - controller: what the builder builds.
//   - queue: the fair queue that controllers take requests from.
//   - fleet: the engine that keeps the clusters of an inventory connected.
//   - clusters: what a provider written by hand embeds.
//   - mctest: API servers in memory, for tests with many clusters.
package mc
