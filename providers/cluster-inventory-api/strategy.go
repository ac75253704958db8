// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package clusterinventoryapi

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	ctrlsource "sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/rollcall-dev/rollcall/pkg/credentials"
	"github.com/rollcall-dev/rollcall/pkg/inventory"
	"github.com/rollcall-dev/rollcall/providers/cluster-inventory-api/kubeconfigstrategy"
)

// strategyMethod is the credentials.Method of a strategy that depends on the hub.
type strategyMethod struct {
	strategy hubStrategy
	hub      atomic.Pointer[client.Client]
}

// hubStrategy is a strategy that reads the hub.
type hubStrategy interface {
	kubeconfigstrategy.Interface
	GetAccess(ctx context.Context, cli client.Client, clp *inventory.Profile) (*credentials.Access, error)
}

// newMethod returns the credential method of the options, which may be a
// strategyMethod.
func newMethod(opts Options) (credentials.Method, *strategyMethod, error) {
	hasStrategy := opts.KubeconfigStrategyOption != (kubeconfigstrategy.Option{})
	switch {
	case opts.Credentials != nil && hasStrategy:
		return nil, nil, errors.New("set either Options.Credentials or Options.KubeconfigStrategyOption")
	case opts.Credentials != nil:
		return opts.Credentials, nil, nil
	case !hasStrategy:
		return nil, nil, errors.New("must specify Options.Credentials")
	}
	// The strategy lives as long as the process, as a provider cannot be closed.
	strategy, err := kubeconfigstrategy.New(context.Background(), opts.KubeconfigStrategyOption)
	if err != nil {
		return nil, nil, err
	}
	switch strategy := strategy.(type) {
	case credentials.Method:
		return strategy, nil, nil
	case hubStrategy:
		if opts.Hub != nil {
			return nil, nil, errors.New("a strategy that reads the hub requires that the hub is the manager's local cluster: do not set Options.Hub")
		}
		s := &strategyMethod{strategy: strategy}
		return s, s, nil
	default:
		return nil, nil, fmt.Errorf("unknown strategy %T", strategy)
	}
}

// Resolve implements credentials.Method.
func (s *strategyMethod) Resolve(ctx context.Context, profile *inventory.Profile) (*credentials.Access, error) {
	hub := s.hub.Load()
	if hub == nil {
		return nil, errors.New("the hub is not known: call SetupWithManager")
	}
	return s.strategy.GetAccess(ctx, *hub, profile)
}

// setUp sets the hub, and adds a runnable that rechecks profiles after events of
// the strategy's CustomWatches.
func (s *strategyMethod) setUp(local manager.Manager, recheck func(inventory.Key)) error {
	hub := local.GetClient()
	s.hub.Store(&hub)
	return local.Add(&rechecker{cache: local.GetCache(), watches: s.strategy.CustomWatches(), recheck: recheck})
}

// rechecker is a manager.Runnable that rechecks profiles after events of watches.
type rechecker struct {
	cache   cache.Cache
	watches []kubeconfigstrategy.CustomWatch
	recheck func(inventory.Key)
}

// NeedLeaderElection implements manager.LeaderElectionRunnable: the provider may
// run on replicas that are not elected.
func (r *rechecker) NeedLeaderElection() bool { return false }

// Start implements manager.Runnable.
func (r *rechecker) Start(ctx context.Context) error {
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer queue.ShutDown()
	defer context.AfterFunc(ctx, queue.ShutDown)()
	var syncing sync.WaitGroup
	defer syncing.Wait()
	for _, watch := range r.watches {
		source := ctrlsource.Kind(r.cache, watch.Object, watch.EventHandler)
		if err := source.Start(ctx, queue); err != nil {
			return err
		}
		syncing.Go(func() { logUnsynced(ctx, source) })
	}
	for {
		req, shutdown := queue.Get()
		if shutdown {
			return nil
		}
		r.recheck(req.NamespacedName)
		queue.Done(req)
	}
}

// logUnsynced logs an error if the source does not sync in time. Its informer keeps
// trying.
func logUnsynced(ctx context.Context, source ctrlsource.SyncingSource) {
	ctx, cancel := context.WithTimeout(ctx, watchSyncTimeout)
	defer cancel()
	if err := source.WaitForSync(ctx); err != nil && !errors.Is(ctx.Err(), context.Canceled) {
		log.FromContext(ctx).Error(err, "Cannot watch the objects of the kubeconfig strategy, clusters cannot be connected until this works", "source", fmt.Sprint(source))
	}
}

// watchSyncTimeout is controller-runtime's default for the sources of a controller.
const watchSyncTimeout = 2 * time.Minute

// Reconcile resolves the credentials of the profile that the request names again.
// A program calls it when it knows that they have changed.
func (p *Provider) Reconcile(_ context.Context, req reconcile.Request) (reconcile.Result, error) {
	p.Recheck(req.NamespacedName)
	return reconcile.Result{}, nil
}
