// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package apicompat

import (
	"context"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	mcmanager "github.com/rollcall-dev/rollcall/pkg/mc/manager"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
	"github.com/rollcall-dev/rollcall/providers/kind"
)

var (
	_ *kind.Provider = kind.New()
	_ *kind.Provider = kind.New(kind.Options{Prefix: "fleet-"})

	_ func(*kind.Provider, context.Context, multicluster.ClusterName) (cluster.Cluster, error) = (*kind.Provider).Get
	_ func(*kind.Provider, context.Context, client.Object, string, client.IndexerFunc) error   = (*kind.Provider).IndexField
	_ func(*kind.Provider, context.Context, multicluster.Aware) error                          = (*kind.Provider).Start
	_ func(*kind.Provider, context.Context, mcmanager.Manager) error                           = (*kind.Provider).Run

	_ = kind.Options{
		Prefix:         "",
		ClusterOptions: []cluster.Option(nil),
		RESTOptions:    []func(cfg *rest.Config) error(nil),
	}
)
