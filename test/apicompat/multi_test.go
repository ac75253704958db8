// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package apicompat

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	mcmanager "github.com/rollcall-dev/rollcall/pkg/mc/manager"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
	"github.com/rollcall-dev/rollcall/providers/multi"
)

var (
	_ func(multi.Options) *multi.Provider                                       = multi.New
	_ func(multi.ManagerSetupProvider, mcmanager.Manager) multicluster.Provider = multi.AsRunnable
	_                                                                           = multi.Options{Separator: "", ChannelSize: 0, LoggerSuffix: ""}

	_ func(*multi.Provider, string, multicluster.Provider) error                                = (*multi.Provider).AddProvider
	_ func(*multi.Provider, context.Context, multicluster.ClusterName) (cluster.Cluster, error) = (*multi.Provider).Get
	_ func(*multi.Provider, string) (multicluster.Provider, bool)                               = (*multi.Provider).GetProvider
	_ func(*multi.Provider, context.Context, client.Object, string, client.IndexerFunc) error   = (*multi.Provider).IndexField
	_ func(*multi.Provider) []string                                                            = (*multi.Provider).ProviderNames
	_ func(*multi.Provider, string)                                                             = (*multi.Provider).RemoveProvider
	_ func(*multi.Provider, context.Context, multicluster.Aware) error                          = (*multi.Provider).Start
	_ func(*multi.Provider, context.Context, mcmanager.Manager) error                           = (*multi.Provider).Run
)

type managerSetupProvider interface {
	multicluster.Provider
	SetupWithManager(ctx context.Context, mgr mcmanager.Manager) error
}

var (
	_ managerSetupProvider       = multi.ManagerSetupProvider(nil)
	_ multi.ManagerSetupProvider = managerSetupProvider(nil)
)
