// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package handler

import (
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
	mcreconcile "github.com/rollcall-dev/rollcall/pkg/mc/reconcile"
)

// EventHandler enqueues Requests for events of one cluster.
type EventHandler = handler.TypedEventHandler[client.Object, mcreconcile.Request]

// EventHandlerFunc makes the EventHandler for a cluster.
type EventHandlerFunc = func(multicluster.ClusterName, cluster.Cluster) EventHandler

// TypedEventHandlerFunc makes the event handler for a cluster. It is called for
// each source when a cluster is engaged, and again each time that the source is
// made anew there because it could not start or has not synced in time. It may
// be called from any goroutine, and does no I/O.
type TypedEventHandlerFunc[object client.Object, request mcreconcile.ClusterAware[request]] func(multicluster.ClusterName, cluster.Cluster) handler.TypedEventHandler[object, request]

// EnqueueRequestForObject is an EventHandlerFunc: its handlers enqueue a
// Request with the name and namespace of the event's object.
func EnqueueRequestForObject(clusterName multicluster.ClusterName, cl cluster.Cluster) handler.TypedEventHandler[client.Object, mcreconcile.Request] {
	return TypedEnqueueRequestForObject[client.Object]()(clusterName, cl)
}

// TypedEnqueueRequestForObject makes handlers that enqueue a Request with the
// name and namespace of the event's object.
func TypedEnqueueRequestForObject[object client.Object]() TypedEventHandlerFunc[object, mcreconcile.Request] {
	return TypedLift[object](&handler.TypedEnqueueRequestForObject[object]{})
}

// EnqueueRequestForOwner makes handlers that enqueue a Request for each owner
// of the given type that the event's object has. Use handler.OnlyControllerOwner
// to look at the controlling owner alone.
func EnqueueRequestForOwner(ownerType client.Object, opts ...handler.OwnerOption) EventHandlerFunc {
	return TypedEnqueueRequestForOwner[client.Object](ownerType, opts...)
}

// TypedEnqueueRequestForOwner makes handlers that enqueue a Request for each
// owner of the given type that the event's object has. The owner's type must
// be in the cluster's scheme; making a handler panics otherwise, as it does in
// controller-runtime.
func TypedEnqueueRequestForOwner[object client.Object](ownerType client.Object, opts ...handler.OwnerOption) TypedEventHandlerFunc[object, mcreconcile.Request] {
	return func(clusterName multicluster.ClusterName, cl cluster.Cluster) handler.TypedEventHandler[object, mcreconcile.Request] {
		forOwner := handler.TypedEnqueueRequestForOwner[object](cl.GetScheme(), cl.GetRESTMapper(), ownerType, opts...)
		return TypedForCluster(forOwner, clusterName)
	}
}

// EnqueueRequestsFromMapFunc makes handlers that enqueue what the function
// maps the event's object to, for the cluster that the event came from. Both
// the old and the new object of an update are mapped.
func EnqueueRequestsFromMapFunc(fn handler.MapFunc) EventHandlerFunc {
	return TypedLift[client.Object](handler.EnqueueRequestsFromMapFunc(fn))
}

// TypedEnqueueRequestsFromMapFunc makes handlers that enqueue what the
// function maps the event's object to, for the cluster that the event came
// from, whatever cluster the mapped requests name.
func TypedEnqueueRequestsFromMapFunc[object client.Object, request mcreconcile.ClusterAware[request]](fn handler.TypedMapFunc[object, request]) TypedEventHandlerFunc[object, request] {
	return TypedInjectCluster(handler.TypedEnqueueRequestsFromMapFunc(fn))
}

// TypedEnqueueRequestsFromMapFuncWithClusterPreservation returns a handler
// that enqueues what the function maps the event's object to, for the clusters
// that the mapped requests name. The function finds the name of the event's
// cluster in its context, see pkg/mc/context.
func TypedEnqueueRequestsFromMapFuncWithClusterPreservation[object client.Object, request mcreconcile.ClusterAware[request]](fn handler.TypedMapFunc[object, request]) handler.TypedEventHandler[object, request] {
	return handler.TypedEnqueueRequestsFromMapFunc(fn)
}

// Lift makes a handler written for one cluster serve them all: what it
// enqueues is about the cluster that the event came from.
func Lift(h handler.EventHandler) EventHandlerFunc {
	return TypedLift[client.Object](h)
}

// TypedLift makes a handler written for one cluster serve them all: what it
// enqueues is about the cluster that the event came from.
func TypedLift[object client.Object](h handler.TypedEventHandler[object, reconcile.Request]) TypedEventHandlerFunc[object, mcreconcile.Request] {
	return func(clusterName multicluster.ClusterName, _ cluster.Cluster) handler.TypedEventHandler[object, mcreconcile.Request] {
		return TypedForCluster(h, clusterName)
	}
}

// ForCluster makes a handler written for one cluster enqueue for the cluster
// of that name.
func ForCluster(h handler.EventHandler, clusterName multicluster.ClusterName) EventHandler {
	return TypedForCluster[client.Object](h, clusterName)
}

// TypedForCluster makes a handler written for one cluster enqueue for the
// cluster of that name.
func TypedForCluster[object client.Object](h handler.TypedEventHandler[object, reconcile.Request], clusterName multicluster.ClusterName) handler.TypedEventHandler[object, mcreconcile.Request] {
	return &translator[object, reconcile.Request, mcreconcile.Request]{
		handler: h,
		to: func(req reconcile.Request) mcreconcile.Request {
			return mcreconcile.Request{Request: req, ClusterName: clusterName}
		},
		from: func(req mcreconcile.Request) reconcile.Request { return req.Request },
	}
}

// TypedInjectCluster makes a handler's requests be about the cluster that the
// event came from, whatever cluster they name.
func TypedInjectCluster[object client.Object, request mcreconcile.ClusterAware[request]](h handler.TypedEventHandler[object, request]) TypedEventHandlerFunc[object, request] {
	return func(clusterName multicluster.ClusterName, _ cluster.Cluster) handler.TypedEventHandler[object, request] {
		return &translator[object, request, request]{
			handler: h,
			to:      func(req request) request { return req.WithCluster(clusterName) },
			from:    func(req request) request { return req },
		}
	}
}

// WithLowPriorityWhenUnchanged makes the handlers enqueue with low priority
// for events of an initial listing or a resync, where the controller's queue
// knows priorities. The handlers of this package do so already; use it for
// handlers of your own.
func WithLowPriorityWhenUnchanged[object client.Object, request mcreconcile.ClusterAware[request]](u TypedEventHandlerFunc[object, request]) TypedEventHandlerFunc[object, request] {
	return func(clusterName multicluster.ClusterName, cl cluster.Cluster) handler.TypedEventHandler[object, request] {
		return handler.WithLowPriorityWhenUnchanged(u(clusterName, cl))
	}
}
