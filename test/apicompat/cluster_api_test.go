// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package apicompat

import (
	"context"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	mcmanager "github.com/rollcall-dev/rollcall/pkg/mc/manager"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
	clusterapi "github.com/rollcall-dev/rollcall/providers/cluster-api"
)

var (
	_ func(clusterapi.Options) *clusterapi.Provider = clusterapi.New

	_ func(*clusterapi.Provider, context.Context, multicluster.ClusterName) (cluster.Cluster, error) = (*clusterapi.Provider).Get
	_ func(*clusterapi.Provider, context.Context, client.Object, string, client.IndexerFunc) error   = (*clusterapi.Provider).IndexField
	_ func(*clusterapi.Provider) []multicluster.ClusterName                                          = (*clusterapi.Provider).ListClusters
	_ func(*clusterapi.Provider, context.Context, reconcile.Request) (reconcile.Result, error)       = (*clusterapi.Provider).Reconcile
	_ func(*clusterapi.Provider, mcmanager.Manager) error                                            = (*clusterapi.Provider).SetupWithManager
	_ func(*clusterapi.Provider, context.Context, mcmanager.Manager) error                           = (*clusterapi.Provider).Run

	_ = clusterapi.Options{
		ClusterOptions: []cluster.Option(nil),
		ObjectToWatch:  client.Object(nil),
		GetSecret:      (func(ctx context.Context, cl client.Client, ccl client.Object) ([]byte, error))(nil),
		NewCluster:     (func(ctx context.Context, ccl client.Object, cfg *rest.Config, opts ...cluster.Option) (cluster.Cluster, error))(nil),
		IsReady:        (func(ctx context.Context, ccl client.Object) bool)(nil),
		Predicates:     []predicate.Predicate(nil),
	}
)
