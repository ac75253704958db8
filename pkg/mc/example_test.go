// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package mc_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/rollcall-dev/rollcall/internal/exampletest"
	"github.com/rollcall-dev/rollcall/pkg/mc"
	"github.com/rollcall-dev/rollcall/pkg/mc/clusters"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
	mcreconcile "github.com/rollcall-dev/rollcall/pkg/mc/reconcile"
)

// provider is a provider with a fixed list of clusters.
type provider struct {
	clusters.Clusters[cluster.Cluster]
	configs map[multicluster.ClusterName]*rest.Config
}

// Start engages the manager with the clusters. The manager calls it.
func (p *provider) Start(ctx context.Context, aware multicluster.Aware) error {
	for name, config := range p.configs {
		cl, err := cluster.New(config)
		if err != nil {
			return err
		}
		if err := p.Add(ctx, name, cl, aware); err != nil {
			return err
		}
	}
	<-ctx.Done()
	return nil
}

// A controller that reconciles the ConfigMap "greeting" in two clusters.
func Example() {
	t, end := exampletest.New() // in a test: its own t
	defer end()
	hub := mctest.New(t)
	fleet := mctest.NewFleet(t, 2, mctest.Options{Objects: []client.Object{&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "greeting"},
		Data:       map[string]string{"text": "hello"},
	}}})

	options := mc.Options{}
	options.Metrics.BindAddress = "0"
	mgr, err := mc.NewManager(hub.Config(), &provider{configs: map[multicluster.ClusterName]*rest.Config{
		"eu": fleet.Cluster(0).Config(),
		"us": fleet.Cluster(1).Config(),
	}}, options)
	if err != nil {
		t.Fatal(err)
	}

	reconciled := make(chan string)
	err = mc.NewControllerManagedBy(mgr).
		For(&corev1.ConfigMap{}).
		WithEventFilter(predicate.NewPredicateFuncs(func(obj client.Object) bool { return obj.GetName() == "greeting" })).
		Complete(mcreconcile.Func(func(ctx context.Context, req mc.Request) (mc.Result, error) {
			cl, err := mgr.GetCluster(ctx, req.ClusterName)
			if err != nil {
				return mc.Result{}, err
			}
			cm := &corev1.ConfigMap{}
			if err := cl.GetClient().Get(ctx, req.NamespacedName, cm); err != nil {
				return mc.Result{}, client.IgnoreNotFound(err)
			}
			reconciled <- fmt.Sprintf("%s: %s", req, cm.Data["text"])
			return mc.Result{}, nil
		}))
	if err != nil {
		t.Fatal(err)
	}

	ctx, stop := context.WithCancel(context.Background()) // in a program: mc.SetupSignalHandler()
	stopped := make(chan error)
	go func() { stopped <- mgr.Start(ctx) }()
	fmt.Println(<-reconciled)
	fmt.Println(<-reconciled)
	stop()
	if err := <-stopped; err != nil {
		t.Fatal(err)
	}
	// Unordered output:
	// cluster://eu/default/greeting: hello
	// cluster://us/default/greeting: hello
}
