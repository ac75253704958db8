// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package clusters_test

import (
	"context"
	"fmt"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/rollcall-dev/rollcall/pkg/mc/clusters"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
)

// hostProvider is a provider of the clusters of its hosts.
type hostProvider struct {
	clusters.Clusters[cluster.Cluster]
	hosts map[multicluster.ClusterName]string
}

// Start implements multicluster.ProviderRunnable. Get and IndexField come from
// Clusters.
func (p *hostProvider) Start(ctx context.Context, aware multicluster.Aware) error {
	for name, host := range p.hosts {
		cl, err := cluster.New(&rest.Config{Host: host})
		if err != nil {
			return err
		}
		if err := p.AddOrReplace(ctx, name, cl, aware); err != nil {
			return err
		}
	}
	<-ctx.Done()
	return nil
}

// engageFunc is an Aware.
type engageFunc func(ctx context.Context, name multicluster.ClusterName, cl cluster.Cluster) error

func (f engageFunc) Engage(ctx context.Context, name multicluster.ClusterName, cl cluster.Cluster) error {
	return f(ctx, name, cl)
}

// A provider embeds Clusters. In a program, the manager calls Start.
func Example() {
	provider := &hostProvider{hosts: map[multicluster.ClusterName]string{"eu": "https://eu.example.com"}}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	aware := engageFunc(func(_ context.Context, name multicluster.ClusterName, cl cluster.Cluster) error {
		fmt.Println("engaged:", name, cl.GetConfig().Host)
		stop()
		return nil
	})
	_ = provider.Start(ctx, aware)
	fmt.Println("names after stop:", provider.ClusterNames())
	// Output:
	// engaged: eu https://eu.example.com
	// names after stop: []
}

// A registry looks up the clusters that a manager is engaged with. In a program,
// Manager.Add adds it and the manager calls Engage.
func ExampleRegistry() {
	registry := clusters.NewRegistry[cluster.Cluster]()
	ctx, leave := context.WithCancel(context.Background())
	defer leave()
	for _, name := range []multicluster.ClusterName{"us", "eu"} {
		cl, err := cluster.New(&rest.Config{Host: fmt.Sprintf("https://%s.example.com", name)})
		if err != nil {
			fmt.Println(err)
			return
		}
		if err := registry.Engage(ctx, name, cl); err != nil {
			fmt.Println(err)
			return
		}
	}
	_ = registry.ForEach(func(name multicluster.ClusterName, cl cluster.Cluster) error {
		fmt.Println(name, cl.GetConfig().Host)
		return nil
	})
	leave()
	_, err := registry.Get(context.Background(), "eu")
	fmt.Println(err)
	// Output:
	// eu https://eu.example.com
	// us https://us.example.com
	// cluster "eu": cluster not found
}
