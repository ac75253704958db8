// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Package handler maps events of many clusters to requests.
//
// A controller watches a kind in every cluster. So it needs not one event handler
// but a function that returns the handler of each cluster, a
// [TypedEventHandlerFunc]. [Lift] makes such a function from any handler of
// controller-runtime:
//
//	builder.Watches(&corev1.Secret{}, mchandler.Lift(&handler.EnqueueRequestForObject{}))
//
// # The cluster of a request
//
// Requests are for the cluster of the event. Handlers replace the cluster that a
// mapped request names. The exception is
// [TypedEnqueueRequestsFromMapFuncWithClusterPreservation], with which an event
// in one cluster can enqueue requests for other clusters. The context of a map
// function has the name of the event's cluster:
//
//	func(ctx context.Context, obj client.Object) []mcreconcile.Request {
//		from, _ := mccontext.ClusterFrom(ctx)
//		…
//	}
package handler
