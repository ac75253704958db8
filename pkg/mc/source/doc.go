// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Package source provides the events of many clusters.
//
// A multi-cluster [Source] is a recipe: for each cluster it makes a source of
// controller-runtime, which the controller starts when the cluster is engaged
// and stops when it leaves. [Kind] watches the objects of a kind through the
// caches of the clusters:
//
//	src := mcsource.Kind(&corev1.Pod{}, mchandler.TypedEnqueueRequestForObject[*corev1.Pod]())
//	err := ctrl.MultiClusterWatch(src)
//
// Most programs never see this package: the builder's For, Owns and Watches
// use it.
package source
