// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package clusterinventoryapi_test

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/rollcall-dev/rollcall/pkg/credentials"
	"github.com/rollcall-dev/rollcall/pkg/inventory"
	mcbuilder "github.com/rollcall-dev/rollcall/pkg/mc/builder"
	"github.com/rollcall-dev/rollcall/pkg/mc/fleet"
	mcmanager "github.com/rollcall-dev/rollcall/pkg/mc/manager"
	mcreconcile "github.com/rollcall-dev/rollcall/pkg/mc/reconcile"
	clusterinventoryapi "github.com/rollcall-dev/rollcall/providers/cluster-inventory-api"
	"github.com/rollcall-dev/rollcall/providers/cluster-inventory-api/kubeconfigstrategy"
)

// A controller for the ConfigMaps of all healthy clusters of the hub.
func Example() {
	resolver, err := credentials.New(credentials.Options{ProviderFile: "providers.json"})
	if err != nil {
		panic(err)
	}
	defer resolver.Close()
	provider, err := clusterinventoryapi.New(clusterinventoryapi.Options{
		Credentials: resolver,
		Namespace:   "fleet",
		Selection:   inventory.Selection{Health: []inventory.HealthStatus{inventory.Healthy, inventory.HealthUnknown}},
	})
	if err != nil {
		panic(err)
	}
	mgr, err := mcmanager.New(ctrl.GetConfigOrDie(), provider, mcmanager.Options{})
	if err != nil {
		panic(err)
	}
	err = mcbuilder.ControllerManagedBy(mgr).For(&corev1.ConfigMap{}).
		Complete(mcreconcile.Func(func(_ context.Context, req mcreconcile.Request) (ctrl.Result, error) {
			fmt.Println(req.ClusterName, req.NamespacedName)
			return ctrl.Result{}, nil
		}))
	if err != nil {
		panic(err)
	}
	if err := mgr.Start(ctrl.SetupSignalHandler()); err != nil {
		panic(err)
	}
}

// Connection options are the same for all providers.
func ExampleNew_connection() {
	_, err := clusterinventoryapi.New(clusterinventoryapi.Options{
		Credentials: &credentials.Resolver{},
		Connection: fleet.ConnectionOptions{
			ConnectTimeout: time.Minute,
			StartupLimit:   100,
			Probe:          fleet.ProbeOptions{Interval: 30 * time.Second},
			RESTOptions: []func(*rest.Config) error{func(config *rest.Config) error {
				config.UserAgent = "my-controller"
				return nil
			}},
		},
	})
	fmt.Println(err)
	// Output: <nil>
}

// Kubeconfigs in Secrets of the hub replace credential plugins.
func ExampleNew_secrets() {
	_, err := clusterinventoryapi.New(clusterinventoryapi.Options{
		KubeconfigStrategyOption: kubeconfigstrategy.Option{
			Secret: &kubeconfigstrategy.SecretStrategyOption{ConsumerName: "my-controller"},
		},
	})
	fmt.Println(err)
	// Output: <nil>
}
