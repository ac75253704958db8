// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Package nop provides no clusters. It is for programs whose manager needs a provider
// although all their clusters are engaged by other code, and for tests.
package nop

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
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

// Get returns multicluster.ErrClusterNotFound.
func (p *Provider) Get(_ context.Context, clusterName multicluster.ClusterName) (cluster.Cluster, error) {
	return nil, multicluster.NotFoundError(clusterName)
}

// IndexField does nothing.
func (p *Provider) IndexField(context.Context, client.Object, string, client.IndexerFunc) error {
	return nil
}
