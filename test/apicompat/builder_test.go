// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package apicompat

import (
	"context"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	mcbuilder "github.com/rollcall-dev/rollcall/pkg/mc/builder"
	mccontroller "github.com/rollcall-dev/rollcall/pkg/mc/controller"
	mchandler "github.com/rollcall-dev/rollcall/pkg/mc/handler"
	mcmanager "github.com/rollcall-dev/rollcall/pkg/mc/manager"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
	mcreconcile "github.com/rollcall-dev/rollcall/pkg/mc/reconcile"
	mcsource "github.com/rollcall-dev/rollcall/pkg/mc/source"
)

var (
	_ *mcbuilder.TypedBuilder[mcreconcile.Request]      = (*mcbuilder.Builder)(nil)
	_ func(mcmanager.Manager) *mcbuilder.Builder        = mcbuilder.ControllerManagedBy
	_ *mcsource.ClusterFilterFunc                       = (*mcbuilder.ClusterFilterFunc)(nil)
	_ func(...predicate.Predicate) mcbuilder.Predicates = mcbuilder.WithPredicates

	_ func(mcbuilder.ClusterFilterFunc) mcbuilder.EngageOptions            = mcbuilder.WithClusterFilter
	_ func(context.Context, multicluster.Provider) mcbuilder.EngageOptions = mcbuilder.WithClustersFromProvider
	_ func(bool) mcbuilder.EngageOptions                                   = mcbuilder.WithEngageWithLocalCluster
	_ func(bool) mcbuilder.EngageOptions                                   = mcbuilder.WithEngageWithProviderClusters
	_ func(mcbuilder.EngageOptions, *mcbuilder.ForInput)                   = mcbuilder.EngageOptions.ApplyToFor
	_ func(mcbuilder.EngageOptions, *mcbuilder.OwnsInput)                  = mcbuilder.EngageOptions.ApplyToOwns
	_ func(mcbuilder.Predicates, *mcbuilder.ForInput)                      = mcbuilder.Predicates.ApplyToFor
	_ func(mcbuilder.Predicates, *mcbuilder.OwnsInput)                     = mcbuilder.Predicates.ApplyToOwns

	// The type of their parameter is not exported.
	_ = mcbuilder.EngageOptions.ApplyToWatches
	_ = mcbuilder.Predicates.ApplyToWatches
)

type forOption interface{ ApplyToFor(*mcbuilder.ForInput) }

type ownsOption interface{ ApplyToOwns(*mcbuilder.OwnsInput) }

var (
	_ mcbuilder.ForOption  = forOption(nil)
	_ forOption            = mcbuilder.ForOption(nil)
	_ mcbuilder.OwnsOption = ownsOption(nil)
	_ ownsOption           = mcbuilder.OwnsOption(nil)
)

// The type of the options of Watches has no name, so they are checked by use.
var (
	_ = []mcbuilder.ForOption{mcbuilder.OnlyMetadata, mcbuilder.Predicates{}, mcbuilder.EngageOptions{}}
	_ = []mcbuilder.OwnsOption{mcbuilder.OnlyMetadata, mcbuilder.Predicates{}, mcbuilder.EngageOptions{}, mcbuilder.MatchEveryOwner}
	_ = []mcbuilder.WatchesOption{mcbuilder.OnlyMetadata, mcbuilder.Predicates{}, mcbuilder.EngageOptions{}}
	_ = mcbuilder.ForInput{EngageOptions: mcbuilder.EngageOptions{}}
	_ = mcbuilder.OwnsInput{EngageOptions: mcbuilder.EngageOptions{}}
)

func _[request mcreconcile.ClusterAware[request]]() {
	type (
		builder      = *mcbuilder.TypedBuilder[request]
		eventHandler = mchandler.TypedEventHandlerFunc[client.Object, request]
	)
	_ = mcbuilder.WatchesInput[request]{EngageOptions: mcbuilder.EngageOptions{}}
	is[func(mcmanager.Manager) builder](mcbuilder.TypedControllerManagedBy[request])

	is[func(builder, reconcile.TypedReconciler[request]) (mccontroller.TypedController[request], error)](builder.Build)
	is[func(builder, reconcile.TypedReconciler[request]) error](builder.Complete)
	is[func(builder, client.Object, ...mcbuilder.ForOption) builder](builder.For)
	is[func(builder, string) builder](builder.Named)
	is[func(builder, client.Object, ...mcbuilder.OwnsOption) builder](builder.Owns)
	is[func(builder, client.Object, eventHandler, ...mcbuilder.WatchesOption) builder](builder.Watches)
	is[func(builder, client.Object, eventHandler, ...mcbuilder.WatchesOption) builder](builder.WatchesMetadata)
	is[func(builder, source.TypedSource[request]) builder](builder.WatchesRawSource)
	is[func(builder, bool) builder](builder.WithClusterNotFoundWrapper)
	is[func(builder, predicate.Predicate) builder](builder.WithEventFilter)
	is[func(builder, func(*request) logr.Logger) builder](builder.WithLogConstructor)
	is[func(builder, controller.TypedOptions[request]) builder](builder.WithOptions)
}
