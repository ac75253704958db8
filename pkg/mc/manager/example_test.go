// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/rollcall-dev/rollcall/pkg/mc/clusters"
	mcmanager "github.com/rollcall-dev/rollcall/pkg/mc/manager"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
)

// staticProvider is a provider of clusters with known configs.
type staticProvider struct {
	clusters.Clusters[cluster.Cluster]
	configs map[multicluster.ClusterName]*rest.Config
}

func (p *staticProvider) Start(ctx context.Context, aware multicluster.Aware) error {
	for name, config := range p.configs {
		cl, err := cluster.New(config)
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

// inspector is a component: it reads one object of each cluster.
type inspector struct {
	stop func()
}

func (i *inspector) Start(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

func (i *inspector) Engage(ctx context.Context, name multicluster.ClusterName, cl cluster.Cluster) error {
	namespace := &corev1.Namespace{}
	if err := cl.GetAPIReader().Get(ctx, client.ObjectKey{Name: "kube-system"}, namespace); err != nil {
		return err
	}
	fmt.Printf("cluster %s has namespace %s\n", name, namespace.Name)
	i.stop()
	return nil
}

// The manager starts the provider, and engages its clusters with all components.
// Most programs use the builder, whose controllers are components too.
func Example() {
	hub, eu, closeServers := exampleServers()
	defer closeServers()

	provider := &staticProvider{configs: map[multicluster.ClusterName]*rest.Config{"eu": eu}}
	mgr, err := mcmanager.New(hub, provider, mcmanager.Options{Metrics: metricsserver.Options{BindAddress: "0"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	if err := mgr.Add(&inspector{stop: stop}); err != nil {
		fmt.Println(err)
		return
	}
	if err := mgr.Start(ctx); err != nil {
		fmt.Println(err)
	}
	// Output: cluster eu has namespace kube-system
}
