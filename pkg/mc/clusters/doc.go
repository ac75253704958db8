// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Package clusters keeps the clusters of a provider that is written by hand.
//
// [Clusters] holds clusters and runs them. A provider embeds it, which gives it
// the methods of a multicluster.Provider, and tells it which clusters there are:
//
//	type Provider struct {
//		clusters.Clusters[cluster.Cluster]
//	}
//
//	func (p *Provider) Start(ctx context.Context, aware multicluster.Aware) error {
//		for name, config := range p.discover(ctx) {
//			cl, err := cluster.New(config)
//			…
//			err = p.AddOrReplace(ctx, name, cl, aware)
//			…
//		}
//		<-ctx.Done()
//		return nil
//	}
//
// A cluster that cannot be reached costs the call that adds it at most
// WaitCacheTimeout, and nobody else anything: clusters to be added independently
// of each other are added from a goroutine each. Nothing is tried again by
// itself; who needs retries, health checks and credentials that change under a
// running cluster finds them in the fleet of pkg/mc/fleet.
//
// [Registry] is for the other side, for a program that uses clusters: it holds
// those that a manager is engaged with, and runs none of them.
package clusters
