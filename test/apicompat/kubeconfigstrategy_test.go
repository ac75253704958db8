// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package apicompat

import (
	"context"

	"k8s.io/client-go/rest"
	clusterinventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/cluster-inventory-api/pkg/access"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/rollcall-dev/rollcall/providers/cluster-inventory-api/kubeconfigstrategy"
)

// strategy is the expected Interface.
type strategy interface {
	GetKubeConfig(ctx context.Context, cli client.Client, clp *clusterinventoryv1alpha1.ClusterProfile) (*rest.Config, error)
	CustomWatches() []kubeconfigstrategy.CustomWatch
}

const (
	_ string = kubeconfigstrategy.SecretLabelKeyClusterInventoryConsumer
	_ string = kubeconfigstrategy.SecretLabelKeyClusterProfile
	_ string = kubeconfigstrategy.SecretDataKeyKubeConfig
)

var (
	_ strategy                     = kubeconfigstrategy.Interface(nil)
	_ kubeconfigstrategy.Interface = strategy(nil)

	_ func(ctx context.Context, option kubeconfigstrategy.Option) (kubeconfigstrategy.Interface, error) = kubeconfigstrategy.New

	_ = kubeconfigstrategy.AccessProviderOption{Provider: (*access.Config)(nil)}
	_ = kubeconfigstrategy.CredentialsProviderOption{Provider: (*access.Config)(nil)}
	_ = kubeconfigstrategy.SecretStrategyOption{ConsumerName: ""}

	_ = kubeconfigstrategy.CustomWatch{
		Object:       client.Object(nil),
		EventHandler: handler.TypedEventHandler[client.Object, reconcile.Request](nil),
		Opts:         []builder.WatchesOption(nil),
	}
	_ = kubeconfigstrategy.Option{
		Secret:              (*kubeconfigstrategy.SecretStrategyOption)(nil),
		AccessProvider:      (*kubeconfigstrategy.AccessProviderOption)(nil),
		CredentialsProvider: (*kubeconfigstrategy.CredentialsProviderOption)(nil),
	}
)
