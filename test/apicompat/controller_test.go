// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package apicompat

import (
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	mccontroller "github.com/rollcall-dev/rollcall/pkg/mc/controller"
	mcmanager "github.com/rollcall-dev/rollcall/pkg/mc/manager"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
	mcreconcile "github.com/rollcall-dev/rollcall/pkg/mc/reconcile"
	mcsource "github.com/rollcall-dev/rollcall/pkg/mc/source"
)

var (
	_ func(string, mcmanager.Manager, mccontroller.Options) (mccontroller.Controller, error) = mccontroller.New
	_ func(string, mcmanager.Manager, mccontroller.Options) (mccontroller.Controller, error) = mccontroller.NewUnmanaged
	_ *controller.TypedOptions[mcreconcile.Request]                                          = (*mccontroller.Options)(nil)
	_ *mccontroller.TypedController[mcreconcile.Request]                                     = (*mccontroller.Controller)(nil)
)

type typedController[request mcreconcile.ClusterAware[request]] interface {
	controller.TypedController[request]
	multicluster.Aware
	MultiClusterWatch(src mcsource.TypedSource[client.Object, request]) error
}

func _[request mcreconcile.ClusterAware[request]]() {
	type (
		newFunc = func(string, mcmanager.Manager, controller.TypedOptions[request]) (mccontroller.TypedController[request], error)
		theirs  = mccontroller.TypedController[request]
		ours    = typedController[request]
	)
	is[newFunc](mccontroller.NewTyped[request])
	is[newFunc](mccontroller.NewTypedUnmanaged[request])
	is[theirs](ours(nil))
	is[ours](theirs(nil))
}
