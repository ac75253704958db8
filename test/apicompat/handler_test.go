// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package apicompat

import (
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	mchandler "github.com/rollcall-dev/rollcall/pkg/mc/handler"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
	mcreconcile "github.com/rollcall-dev/rollcall/pkg/mc/reconcile"
)

var (
	_ *handler.TypedEventHandler[client.Object, mcreconcile.Request]          = (*mchandler.EventHandler)(nil)
	_ *func(multicluster.ClusterName, cluster.Cluster) mchandler.EventHandler = (*mchandler.EventHandlerFunc)(nil)

	_ func(multicluster.ClusterName, cluster.Cluster) handler.TypedEventHandler[client.Object, mcreconcile.Request] = mchandler.EnqueueRequestForObject

	_ func(client.Object, ...handler.OwnerOption) mchandler.EventHandlerFunc      = mchandler.EnqueueRequestForOwner
	_ func(handler.MapFunc) mchandler.EventHandlerFunc                            = mchandler.EnqueueRequestsFromMapFunc
	_ func(handler.EventHandler, multicluster.ClusterName) mchandler.EventHandler = mchandler.ForCluster
	_ func(handler.EventHandler) mchandler.EventHandlerFunc                       = mchandler.Lift
)

func _[object client.Object, request mcreconcile.ClusterAware[request]]() {
	type (
		plainHandler   = handler.TypedEventHandler[object, reconcile.Request]
		clusterHandler = handler.TypedEventHandler[object, mcreconcile.Request]
		typedHandler   = handler.TypedEventHandler[object, request]
		clusterFunc    = mchandler.TypedEventHandlerFunc[object, mcreconcile.Request]
		typedFunc      = mchandler.TypedEventHandlerFunc[object, request]
		mapFunc        = handler.TypedMapFunc[object, request]
	)
	is[func(multicluster.ClusterName, cluster.Cluster) typedHandler](typedFunc(nil))

	is[func() clusterFunc](mchandler.TypedEnqueueRequestForObject[object])
	is[func(client.Object, ...handler.OwnerOption) clusterFunc](mchandler.TypedEnqueueRequestForOwner[object])
	is[func(mapFunc) typedHandler](mchandler.TypedEnqueueRequestsFromMapFuncWithClusterPreservation[object, request])
	is[func(mapFunc) typedFunc](mchandler.TypedEnqueueRequestsFromMapFunc[object, request])
	is[func(plainHandler, multicluster.ClusterName) clusterHandler](mchandler.TypedForCluster[object])
	is[func(typedHandler) typedFunc](mchandler.TypedInjectCluster[object, request])
	is[func(plainHandler) clusterFunc](mchandler.TypedLift[object])
	is[func(typedFunc) typedFunc](mchandler.WithLowPriorityWhenUnchanged[object, request])
}
