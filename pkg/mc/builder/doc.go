// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Package builder builds multi-cluster controllers. It has the methods of
// controller-runtime's builder:
//
//	err := mcbuilder.ControllerManagedBy(mgr).
//		For(&appsv1.ReplicaSet{}).
//		Owns(&corev1.Pod{}).
//		Complete(reconciler)
//
// For, Owns and Watches watch the clusters of the provider, or the local cluster
// if the manager has no provider. Options select other clusters:
// [WithEngageWithLocalCluster], [WithEngageWithProviderClusters],
// [WithClusterFilter] and [WithClustersFromProvider].
package builder
