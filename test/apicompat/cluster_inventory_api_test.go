// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package apicompat

import (
	"context"

	"k8s.io/client-go/rest"
	clusterinventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	mcmanager "github.com/rollcall-dev/rollcall/pkg/mc/manager"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
	clusterinventoryapi "github.com/rollcall-dev/rollcall/providers/cluster-inventory-api"
	"github.com/rollcall-dev/rollcall/providers/cluster-inventory-api/kubeconfigstrategy"
)

var (
	_ func(clusterinventoryapi.Options) (*clusterinventoryapi.Provider, error) = clusterinventoryapi.New

	_ func(*clusterinventoryapi.Provider, context.Context, multicluster.ClusterName) (cluster.Cluster, error) = (*clusterinventoryapi.Provider).Get
	_ func(*clusterinventoryapi.Provider, context.Context, client.Object, string, client.IndexerFunc) error   = (*clusterinventoryapi.Provider).IndexField
	_ func(*clusterinventoryapi.Provider, mcmanager.Manager) error                                            = (*clusterinventoryapi.Provider).SetupWithManager
	_ func(*clusterinventoryapi.Provider, context.Context, reconcile.Request) (reconcile.Result, error)       = (*clusterinventoryapi.Provider).Reconcile
	_ func(*clusterinventoryapi.Provider, context.Context, mcmanager.Manager) error                           = (*clusterinventoryapi.Provider).Run

	_ = clusterinventoryapi.Options{
		ClusterOptions:           []cluster.Option(nil),
		KubeconfigStrategyOption: kubeconfigstrategy.Option{},
		NewCluster:               (func(ctx context.Context, clp *clusterinventoryv1alpha1.ClusterProfile, cfg *rest.Config, opts ...cluster.Option) (cluster.Cluster, error))(nil),
		IsReady:                  (func(ctx context.Context, clp *clusterinventoryv1alpha1.ClusterProfile) bool)(nil),
	}
)
