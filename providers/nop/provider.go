// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Package nop provides no clusters. It is for programs whose manager needs a provider
// although all their clusters are engaged by other code, and for tests.
package nop

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	mcmanager "github.com/rollcall-dev/rollcall/pkg/mc/manager"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
	"github.com/rollcall-dev/rollcall/providers/internal/runner"
)

// Provider provides no clusters. All methods may be called concurrently, and Start
// more than once.
type Provider struct{}

var (
	_ multicluster.Provider         = &Provider{}
	_ multicluster.ProviderRunnable = &Provider{}
)

// New returns a provider without clusters.
func New() *Provider { return &Provider{} }

// Start waits until the context ends.
func (p *Provider) Start(ctx context.Context, mcAware multicluster.Aware) error {
	<-ctx.Done()
	return nil
}

// Run is for programs that run the provider themselves. The manager starts its own
// provider, so for that Run only waits until the context ends. For any other, it is Start.
func (p *Provider) Run(ctx context.Context, mgr mcmanager.Manager) error {
	return runner.Run(ctx, mgr, p)
}

// Get returns multicluster.ErrClusterNotFound.
func (p *Provider) Get(_ context.Context, clusterName multicluster.ClusterName) (cluster.Cluster, error) {
	return nil, multicluster.NotFoundError(clusterName)
}

// IndexField does nothing.
func (p *Provider) IndexField(context.Context, client.Object, string, client.IndexerFunc) error {
	return nil
}

// ClusterNames returns no names.
func (p *Provider) ClusterNames() []multicluster.ClusterName { return nil }
