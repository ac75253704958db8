// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/rollcall-dev/rollcall/pkg/mc/clusters"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
)

// provider has the clusters that a function lists, which returns when they may have
// changed, and at intervals: a cluster that could not be added, or was removed while it
// was being added, is handled by the next list. Get and IndexField are those of Clusters.
type provider struct {
	clusters.Clusters[cluster.Cluster]
	list func(context.Context) (map[string]*rest.Config, error)
}

// Start implements multicluster.ProviderRunnable.
func (p *provider) Start(ctx context.Context, aware multicluster.Aware) error {
	var adding sync.WaitGroup
	defer adding.Wait()
	for ctx.Err() == nil {
		configs, err := p.list(ctx)
		if err != nil {
			log.FromContext(ctx).Error(err, "Cannot list clusters, keeping them as they are")
			time.Sleep(time.Second) // it may fail at once
			continue
		}
		for name, config := range configs {
			_, err := p.Get(ctx, multicluster.ClusterName(name))
			if err == nil || errors.Is(err, multicluster.ErrClusterNotReady) {
				continue // it is there, or is being added
			}
			adding.Go(func() {
				cl, err := cluster.New(config, func(o *cluster.Options) { o.Scheme = multicluster.SchemeFrom(ctx) })
				if err == nil {
					err = p.Add(ctx, multicluster.ClusterName(name), cl, aware) // until the context ends
				}
				if err != nil && !errors.Is(err, clusters.ErrClusterExists) {
					log.FromContext(ctx).Error(err, "Cannot add the cluster, retrying", "cluster", name)
				}
			})
		}
		for _, name := range p.ClusterNames() {
			if configs[name.String()] == nil {
				p.Remove(name)
			}
		}
	}
	return nil
}
