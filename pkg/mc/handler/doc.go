// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Package handler turns events of many clusters into requests.
//
// A controller watches a kind in every cluster, so it is given not an event
// handler but a function that makes one for each cluster, a
// [TypedEventHandlerFunc]. Every handler of controller-runtime can be used:
// [Lift] (or [TypedLift]) makes such a function of it.
//
// # When the cluster's name is set, and when it is kept
//
// What a handler enqueues is about the cluster that the event came from,
// whatever cluster the request named before, with one exception:
// [TypedEnqueueRequestsFromMapFuncWithClusterPreservation] leaves requests as
// the map function made them. Use it to let an event in one cluster cause a
// reconcile for another. The map function finds the name of the event's
// cluster in its context:
//
//	func(ctx context.Context, obj client.Object) []mcreconcile.Request {
//		from, _ := mccontext.ClusterFrom(ctx)
//		…
//	}
package handler
