// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package apicompat

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	mcmanager "github.com/rollcall-dev/rollcall/pkg/mc/manager"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
	"github.com/rollcall-dev/rollcall/providers/nop"
)

var (
	_ func() *nop.Provider = nop.New
	_                      = nop.Provider{}

	_ func(*nop.Provider, context.Context, multicluster.ClusterName) (cluster.Cluster, error) = (*nop.Provider).Get
	_ func(*nop.Provider, context.Context, client.Object, string, client.IndexerFunc) error   = (*nop.Provider).IndexField
	_ func(*nop.Provider, context.Context, multicluster.Aware) error                          = (*nop.Provider).Start
	_ func(*nop.Provider, context.Context, mcmanager.Manager) error                           = (*nop.Provider).Run
)
