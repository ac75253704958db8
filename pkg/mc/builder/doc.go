// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Package builder makes multi-cluster controllers the way controller-runtime's
// builder makes controllers:
//
//	err := mcbuilder.ControllerManagedBy(mgr).
//		For(&appsv1.ReplicaSet{}).
//		Owns(&corev1.Pod{}).
//		Complete(reconciler)
//
// Each of For, Owns and Watches says with options which clusters it watches:
// [WithEngageWithLocalCluster], [WithEngageWithProviderClusters],
// [WithClusterFilter] and [WithClustersFromProvider]. By default it watches
// the provider's clusters, or the local one where the manager has no provider.
package builder
