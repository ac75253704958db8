// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Package clusters is for providers that are written by hand, and for programs
// that look up clusters.
//
// [Clusters] holds clusters and runs them. A provider embeds it, which gives it
// the methods of a multicluster.Provider, and adds the clusters that it finds:
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
// A cluster that cannot be reached delays the call that adds it by at most
// WaitCacheTimeout, and no other call: to add clusters independently of each
// other, call from one goroutine for each. Nothing is tried again by itself. The
// fleet of pkg/mc/fleet has retries, health probes, and credentials that change
// under a running cluster.
//
// [Registry] holds the clusters that a manager is engaged with, so that a
// program can look them up. It runs none of them.
package clusters
