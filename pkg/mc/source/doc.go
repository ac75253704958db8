// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Package source provides the events of many clusters.
//
// A multi-cluster [Source] returns a controller-runtime source for each cluster.
// The controller starts that source when the cluster is engaged and stops it when
// the cluster is disengaged. [Kind] watches the objects of a kind through the
// caches of the clusters:
//
//	src := mcsource.Kind(&corev1.Pod{}, mchandler.TypedEnqueueRequestForObject[*corev1.Pod]())
//	err := ctrl.MultiClusterWatch(src)
//
// [ClusterLifecycle] enqueues requests for the clusters themselves.
//
// Most programs do not need this package: For, Owns and Watches of the builder
// use it.
package source
