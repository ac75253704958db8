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

// EventHandlerFunc returns the EventHandler of a cluster.
type EventHandlerFunc = func(multicluster.ClusterName, cluster.Cluster) EventHandler

// TypedEventHandlerFunc returns the event handler of a cluster. It is called for
// each source when a cluster is engaged, and again for each retry of a source
// that could not start or did not sync in time. It may be called from any
// goroutine and must not block.
type TypedEventHandlerFunc[object client.Object, request mcreconcile.ClusterAware[request]] func(multicluster.ClusterName, cluster.Cluster) handler.TypedEventHandler[object, request]

// EnqueueRequestForObject is an EventHandlerFunc. Its handlers enqueue a Request
// with the name and namespace of the event's object.
func EnqueueRequestForObject(clusterName multicluster.ClusterName, cl cluster.Cluster) handler.TypedEventHandler[client.Object, mcreconcile.Request] {
	return TypedEnqueueRequestForObject[client.Object]()(clusterName, cl)
}

// TypedEnqueueRequestForObject returns handlers that enqueue a Request with the
// name and namespace of the event's object.
func TypedEnqueueRequestForObject[object client.Object]() TypedEventHandlerFunc[object, mcreconcile.Request] {
	return TypedLift[object](&handler.TypedEnqueueRequestForObject[object]{})
}

// EnqueueRequestForOwner returns handlers that enqueue a Request for each owner
// of the event's object that has the type of ownerType. With
// handler.OnlyControllerOwner, only the controller reference counts.
func EnqueueRequestForOwner(ownerType client.Object, opts ...handler.OwnerOption) EventHandlerFunc {
	return TypedEnqueueRequestForOwner[client.Object](ownerType, opts...)
}

// TypedEnqueueRequestForOwner returns handlers that enqueue a Request for each
// owner of the event's object that has the type of ownerType. As in
// controller-runtime, the function panics if the type is not in the cluster's
// scheme.
func TypedEnqueueRequestForOwner[object client.Object](ownerType client.Object, opts ...handler.OwnerOption) TypedEventHandlerFunc[object, mcreconcile.Request] {
	return func(clusterName multicluster.ClusterName, cl cluster.Cluster) handler.TypedEventHandler[object, mcreconcile.Request] {
		forOwner := handler.TypedEnqueueRequestForOwner[object](cl.GetScheme(), cl.GetRESTMapper(), ownerType, opts...)
		return TypedForCluster(forOwner, clusterName)
	}
}

// EnqueueRequestsFromMapFunc returns handlers that map the event's object to
// requests for the cluster of the event. Of an update, the old and the new object
// are mapped.
func EnqueueRequestsFromMapFunc(fn handler.MapFunc) EventHandlerFunc {
	return TypedLift[client.Object](handler.EnqueueRequestsFromMapFunc(fn))
}

// TypedEnqueueRequestsFromMapFunc returns handlers that map the event's object to
// requests for the cluster of the event, whatever cluster the mapped requests
// name.
func TypedEnqueueRequestsFromMapFunc[object client.Object, request mcreconcile.ClusterAware[request]](fn handler.TypedMapFunc[object, request]) TypedEventHandlerFunc[object, request] {
	return TypedInjectCluster(handler.TypedEnqueueRequestsFromMapFunc(fn))
}

// TypedEnqueueRequestsFromMapFuncWithClusterPreservation returns a handler that
// maps the event's object to requests for the clusters that they name. The
// context of the function has the name of the event's cluster, see
// pkg/mc/context.
func TypedEnqueueRequestsFromMapFuncWithClusterPreservation[object client.Object, request mcreconcile.ClusterAware[request]](fn handler.TypedMapFunc[object, request]) handler.TypedEventHandler[object, request] {
	return handler.TypedEnqueueRequestsFromMapFunc(fn)
}

// Lift adapts a handler of controller-runtime to many clusters. Its requests are
// for the cluster of the event.
func Lift(h handler.EventHandler) EventHandlerFunc {
	return TypedLift[client.Object](h)
}

// TypedLift adapts a handler of controller-runtime to many clusters. Its requests
// are for the cluster of the event.
func TypedLift[object client.Object](h handler.TypedEventHandler[object, reconcile.Request]) TypedEventHandlerFunc[object, mcreconcile.Request] {
	return func(clusterName multicluster.ClusterName, _ cluster.Cluster) handler.TypedEventHandler[object, mcreconcile.Request] {
		return TypedForCluster(h, clusterName)
	}
}

// ForCluster adapts a handler of controller-runtime: its requests are for the
// named cluster.
func ForCluster(h handler.EventHandler, clusterName multicluster.ClusterName) EventHandler {
	return TypedForCluster[client.Object](h, clusterName)
}

// TypedForCluster adapts a handler of controller-runtime: its requests are for
// the named cluster.
func TypedForCluster[object client.Object](h handler.TypedEventHandler[object, reconcile.Request], clusterName multicluster.ClusterName) handler.TypedEventHandler[object, mcreconcile.Request] {
	return &translator[object, reconcile.Request, mcreconcile.Request]{
		handler: h,
		to: func(req reconcile.Request) mcreconcile.Request {
			return mcreconcile.Request{Request: req, ClusterName: clusterName}
		},
		from: func(req mcreconcile.Request) reconcile.Request { return req.Request },
	}
}

// TypedInjectCluster returns handlers that replace the cluster of the handler's
// requests by the cluster of the event.
func TypedInjectCluster[object client.Object, request mcreconcile.ClusterAware[request]](h handler.TypedEventHandler[object, request]) TypedEventHandlerFunc[object, request] {
	return func(clusterName multicluster.ClusterName, _ cluster.Cluster) handler.TypedEventHandler[object, request] {
		return &translator[object, request, request]{
			handler: h,
			to:      func(req request) request { return req.WithCluster(clusterName) },
			from:    func(req request) request { return req },
		}
	}
}

// WithLowPriorityWhenUnchanged returns handlers that enqueue with low priority for
// events of the initial list and of a resync, if the controller's queue has
// priorities. The handlers of this package do so already. Use it for handlers of
// your own.
func WithLowPriorityWhenUnchanged[object client.Object, request mcreconcile.ClusterAware[request]](u TypedEventHandlerFunc[object, request]) TypedEventHandlerFunc[object, request] {
	return func(clusterName multicluster.ClusterName, cl cluster.Cluster) handler.TypedEventHandler[object, request] {
		return handler.WithLowPriorityWhenUnchanged(u(clusterName, cl))
	}
}
