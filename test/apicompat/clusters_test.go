// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package apicompat

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/rollcall-dev/rollcall/pkg/mc/clusters"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
)

var _ = clusters.Index{Object: client.Object(nil), Field: "", Extractor: client.IndexerFunc(nil)}

func _[T cluster.Cluster]() {
	type (
		ctx  = context.Context
		name = multicluster.ClusterName
		held = *clusters.Clusters[T]
	)
	var (
		equal  func(a, b T) bool
		handle func(error, string, ...any)
	)
	is[held](&clusters.Clusters[T]{ErrorHandler: handle, EqualClusters: equal, WaitCacheTimeout: time.Duration(0)})
	is[func(a, b T) bool](clusters.EqualClusters[T])
	is[func() clusters.Clusters[T]](clusters.New[T])

	is[func(held, ctx, name, T, multicluster.Aware) error](held.Add)
	is[func(held, ctx, name, T, multicluster.Aware) error](held.AddOrReplace)
	is[func(held) []multicluster.ClusterName](held.ClusterNames)
	is[func(held, ctx, name) (cluster.Cluster, error)](held.Get)
	is[func(held, ctx, name) (T, error)](held.GetTyped)
	is[func(held, ctx, client.Object, string, client.IndexerFunc) error](held.IndexField)
	is[func(held) []clusters.Index](held.Indexers)
	is[func(held, name)](held.Remove)
}

func _[T cluster.Cluster]() {
	type (
		ctx      = context.Context
		name     = multicluster.ClusterName
		registry = *clusters.Registry[T]
	)
	var equal func(a, b T) bool
	is[registry](&clusters.Registry[T]{EqualClusters: equal})
	is[func() registry](clusters.NewRegistry[T])

	is[func(registry, ctx, name, T) error](registry.Add)
	is[func(registry, ctx, name, T) error](registry.AddOrReplace)
	is[func(registry) []multicluster.ClusterName](registry.ClusterNames)
	is[func(registry, ctx, name, cluster.Cluster) error](registry.Engage)
	is[func(registry, func(name, T) error) error](registry.ForEach)
	is[func(registry, ctx, name) (cluster.Cluster, error)](registry.Get)
	is[func(registry, ctx, name) (T, error)](registry.GetTyped)
	is[func(registry, name)](registry.Remove)
	is[func(registry, name, T)](registry.RemoveIfEqual)
	is[func(registry, ctx) error](registry.Start)
}
