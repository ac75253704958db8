// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package multicluster_test

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/rollcall-dev/rollcall/pkg/mc/clusters"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
)

// probingProvider engages one cluster and shares the results of its probes.
type probingProvider struct {
	clusters.Clusters[cluster.Cluster]
	config *rest.Config
	probes <-chan error
}

// Start implements multicluster.ProviderRunnable.
func (p *probingProvider) Start(ctx context.Context, aware multicluster.Aware) error {
	cl, err := cluster.New(p.config, func(o *cluster.Options) { o.Scheme = multicluster.SchemeFrom(ctx) })
	if err != nil {
		return err
	}
	engagement := multicluster.NewEngagement(nil)
	if err := p.Add(multicluster.WithEngagement(ctx, engagement), "eu", cl, aware); err != nil {
		return err
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-p.probes:
			engagement.SetHealthy(err == nil)
		}
	}
}

// printer prints what it is engaged with.
type printer struct{}

// Engage implements multicluster.Aware.
func (printer) Engage(ctx context.Context, name multicluster.ClusterName, _ cluster.Cluster) error {
	fmt.Println("engaged:", name)
	multicluster.EngagementFrom(ctx).Join(ctx, printedCluster(name))
	return nil
}

// printedCluster implements multicluster.Component.
type printedCluster multicluster.ClusterName

func (c printedCluster) SetClusterHealthy(healthy bool) { fmt.Printf("%s healthy: %v\n", c, healthy) }
func (c printedCluster) ClusterBacklog() int            { return 0 }

// A provider shares the health of its cluster with the components that the
// cluster is engaged with. In a program, the manager calls Start.
func Example() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	probes := make(chan error)
	go func() {
		// The last one is received when the one before has been shared.
		for _, result := range []error{nil, errors.New("no response"), nil, nil} {
			probes <- result
		}
		cancel()
	}()
	provider := &probingProvider{config: &rest.Config{Host: "https://eu.example.com"}, probes: probes}
	if err := provider.Start(ctx, printer{}); err != nil {
		fmt.Println(err)
	}
	// Output:
	// engaged: eu
	// eu healthy: false
	// eu healthy: true
}
