// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package clusterinventoryapi

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/rollcall-dev/rollcall/pkg/credentials"
	"github.com/rollcall-dev/rollcall/pkg/inventory"
	mcmanager "github.com/rollcall-dev/rollcall/pkg/mc/manager"
	"github.com/rollcall-dev/rollcall/providers/cluster-inventory-api/kubeconfigstrategy"
)

// strategyMethod makes a strategy a credentials.Method.
type strategyMethod struct {
	kubeconfigstrategy.Interface
	hub atomic.Pointer[client.Client] // from the manager
}

// newMethod returns what opens the clusters.
func newMethod(opts Options) (credentials.Method, *strategyMethod, error) {
	if opts.Credentials != nil {
		if opts.KubeconfigStrategyOption != (kubeconfigstrategy.Option{}) {
			return nil, nil, errors.New("set either Options.Credentials or Options.KubeconfigStrategyOption")
		}
		return opts.Credentials, nil, nil
	}
	if opts.KubeconfigStrategyOption == (kubeconfigstrategy.Option{}) {
		return nil, nil, errors.New("must specify Options.Credentials")
	}
	// The strategy lives as long as the provider, which ends with the process.
	strategy, err := kubeconfigstrategy.New(context.Background(), opts.KubeconfigStrategyOption)
	if err != nil {
		return nil, nil, err
	}
	if opts.Hub != nil && len(strategy.CustomWatches()) > 0 {
		return nil, nil, errors.New("a strategy that watches the hub needs the hub to be the manager's local cluster: leave Options.Hub out")
	}
	s := &strategyMethod{Interface: strategy}
	if method, ok := strategy.(credentials.Method); ok {
		return method, s, nil
	}
	return s, s, nil
}

// Resolve implements credentials.Method.
func (s *strategyMethod) Resolve(ctx context.Context, profile *inventory.Profile) (*credentials.Access, error) {
	hub := s.hub.Load()
	if hub == nil {
		return nil, errors.New("the hub is not known yet: SetupWithManager has not been called")
	}
	config, err := s.GetKubeConfig(ctx, *hub, profile)
	if err != nil {
		return nil, err
	}
	return credentials.FromRESTConfig(config), nil
}

// setUp gives the strategy its hub, and has profiles resolved again after the
// events that it cares for.
func (s *strategyMethod) setUp(p *Provider, mgr mcmanager.Manager) error {
	local := mgr.GetLocalManager()
	hub := local.GetClient()
	s.hub.Store(&hub)
	watches := s.CustomWatches()
	if len(watches) == 0 {
		return nil
	}
	b := builder.ControllerManagedBy(local).
		Named("cluster-inventory-api-credentials").
		WithOptions(controller.Options{
			// Several providers may be set up with one manager.
			SkipNameValidation: new(true),
			// The provider may run on replicas that are not elected. Where it
			// waits for the election, there are no clusters and nothing to do.
			NeedLeaderElection: new(false),
		})
	for _, w := range watches {
		b = b.Watches(w.Object, w.EventHandler, w.Opts...)
	}
	if err := b.Complete(p); err != nil {
		return fmt.Errorf("cannot watch what credentials depend on: %w", err)
	}
	return nil
}

// Reconcile has the access of the profile that the request names resolved
// again. The provider calls it after events of its strategy's CustomWatches; a
// program may do so when it knows that a cluster's credentials have changed.
func (p *Provider) Reconcile(_ context.Context, req reconcile.Request) (reconcile.Result, error) {
	p.Recheck(req.NamespacedName)
	return reconcile.Result{}, nil
}
