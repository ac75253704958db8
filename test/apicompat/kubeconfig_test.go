// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package apicompat

import (
	"context"

	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	mcmanager "github.com/rollcall-dev/rollcall/pkg/mc/manager"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
	"github.com/rollcall-dev/rollcall/providers/kubeconfig"
)

const (
	_ string = kubeconfig.DefaultKubeconfigSecretLabel
	_ string = kubeconfig.DefaultKubeconfigSecretKey
	_ string = kubeconfig.DefaultControllerName
)

var (
	_ func(kubeconfig.Options) *kubeconfig.Provider = kubeconfig.New

	_ func(*kubeconfig.Provider, context.Context, multicluster.ClusterName) (cluster.Cluster, error) = (*kubeconfig.Provider).Get
	_ func(*kubeconfig.Provider, context.Context, client.Object, string, client.IndexerFunc) error   = (*kubeconfig.Provider).IndexField
	_ func(*kubeconfig.Provider) []multicluster.ClusterName                                          = (*kubeconfig.Provider).ListClusters
	_ func(*kubeconfig.Provider, context.Context, ctrl.Request) (ctrl.Result, error)                 = (*kubeconfig.Provider).Reconcile
	_ func(*kubeconfig.Provider, context.Context, mcmanager.Manager) error                           = (*kubeconfig.Provider).SetupWithManager
	_ func(*kubeconfig.Provider, context.Context, mcmanager.Manager) error                           = (*kubeconfig.Provider).Run

	_ = kubeconfig.Options{
		Namespace:             "",
		KubeconfigSecretLabel: "",
		KubeconfigSecretKey:   "",
		ClusterOptions:        []cluster.Option(nil),
		RESTOptions:           []func(cfg *rest.Config) error(nil),
		ControllerName:        "",
	}
)
