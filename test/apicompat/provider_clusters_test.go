// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package apicompat

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	mcmanager "github.com/rollcall-dev/rollcall/pkg/mc/manager"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
	"github.com/rollcall-dev/rollcall/providers/clusters"
)

var (
	_ func() *clusters.Provider = clusters.New
	_ *int                      = &clusters.InputChannelSize

	_ func(*clusters.Provider, context.Context, multicluster.ClusterName, cluster.Cluster) error   = (*clusters.Provider).Add
	_ func(*clusters.Provider, context.Context, multicluster.Aware) error                          = (*clusters.Provider).Start
	_ func(*clusters.Provider) []multicluster.ClusterName                                          = (*clusters.Provider).ClusterNames
	_ func(*clusters.Provider, context.Context, multicluster.ClusterName) (cluster.Cluster, error) = (*clusters.Provider).Get
	_ func(*clusters.Provider, context.Context, multicluster.ClusterName) (cluster.Cluster, error) = (*clusters.Provider).GetTyped
	_ func(*clusters.Provider, context.Context, client.Object, string, client.IndexerFunc) error   = (*clusters.Provider).IndexField
	_ func(*clusters.Provider, multicluster.ClusterName)                                           = (*clusters.Provider).Remove
	_ func(*clusters.Provider, context.Context, mcmanager.Manager) error                           = (*clusters.Provider).Run
)
