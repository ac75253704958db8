// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package multicluster_test

import (
	"context"
	"fmt"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
)

// probingProvider engages one cluster and shares the results of its probes.
type probingProvider struct {
	config *rest.Config
	probes <-chan error
}

// Start implements multicluster.ProviderRunnable.
func (p *probingProvider) Start(ctx context.Context, aware multicluster.Aware) error {
	cl, err := cluster.New(p.config, func(o *cluster.Options) { o.Scheme = multicluster.SchemeFrom(ctx) })
	if err != nil {
		return multicluster.TerminalError(err)
	}
	engagement := multicluster.NewEngagement(nil)
	clusterCtx, leave := context.WithCancel(multicluster.WithEngagement(ctx, engagement))
	defer leave()
	if err := aware.Engage(clusterCtx, "eu", cl); err != nil {
		return err
	}
	for err := range p.probes {
		engagement.SetHealthy(err == nil)
	}
	return nil
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
	probes := make(chan error, 3)
	probes <- nil
	probes <- fmt.Errorf("no answer")
	probes <- nil
	close(probes)
	provider := &probingProvider{config: &rest.Config{Host: "https://eu.example.com"}, probes: probes}
	if err := provider.Start(context.Background(), printer{}); err != nil {
		fmt.Println(err)
	}
	// Output:
	// engaged: eu
	// eu healthy: false
	// eu healthy: true
}
