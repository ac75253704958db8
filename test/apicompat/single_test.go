// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package apicompat

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	mcmanager "github.com/rollcall-dev/rollcall/pkg/mc/manager"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
	"github.com/rollcall-dev/rollcall/providers/single"
)

var (
	_ func(multicluster.ClusterName, cluster.Cluster) *single.Provider = single.New

	_ func(*single.Provider, context.Context, multicluster.ClusterName) (cluster.Cluster, error) = (*single.Provider).Get
	_ func(*single.Provider, context.Context, client.Object, string, client.IndexerFunc) error   = (*single.Provider).IndexField
	_ func(*single.Provider, context.Context, multicluster.Aware) error                          = (*single.Provider).Start
	_ func(*single.Provider, context.Context, mcmanager.Manager) error                           = (*single.Provider).Run
)
