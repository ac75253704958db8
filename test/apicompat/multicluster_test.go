// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package apicompat

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
)

// is compiles if the value can be assigned to the type.
func is[T any](T) {}

var _ *error = &multicluster.ErrClusterNotFound

const _ = multicluster.ClusterName("any")

var (
	_ func(multicluster.ClusterName) bool   = multicluster.ClusterName.Empty
	_ func(multicluster.ClusterName) string = multicluster.ClusterName.String
)

type aware interface {
	Engage(context.Context, multicluster.ClusterName, cluster.Cluster) error
}

type provider interface {
	Get(ctx context.Context, clusterName multicluster.ClusterName) (cluster.Cluster, error)
	IndexField(ctx context.Context, obj client.Object, field string, extractValue client.IndexerFunc) error
}

type providerRunnable interface {
	Start(context.Context, multicluster.Aware) error
}

var (
	_ multicluster.Aware            = aware(nil)
	_ aware                         = multicluster.Aware(nil)
	_ multicluster.Provider         = provider(nil)
	_ provider                      = multicluster.Provider(nil)
	_ multicluster.ProviderRunnable = providerRunnable(nil)
	_ providerRunnable              = multicluster.ProviderRunnable(nil)
)
