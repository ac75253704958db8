// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package kubeconfig

import (
	"context"
	"errors"
	"fmt"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/rollcall-dev/rollcall/pkg/credentials/kubeconfig"
	"github.com/rollcall-dev/rollcall/pkg/inventory"
	"github.com/rollcall-dev/rollcall/pkg/mc/fleet"
	mcmanager "github.com/rollcall-dev/rollcall/pkg/mc/manager"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
	"github.com/rollcall-dev/rollcall/providers/internal/kubeconfigs"
	"github.com/rollcall-dev/rollcall/providers/internal/runner"
)

// Provider provides the clusters of kubeconfigs in Secrets. All methods may be called
// concurrently.
type Provider struct {
	*fleet.Fleet
	source *source
	err    error // of the options
}

var (
	_ multicluster.Provider         = &Provider{}
	_ multicluster.ProviderRunnable = &Provider{}
)

// New returns a provider, which the manager starts. Errors in the options are returned
// by SetupWithManager and Start.
func New(opts Options) *Provider {
	p, err := newProvider(opts)
	if err != nil {
		p.err = fmt.Errorf("kubeconfig provider: %w", err)
	}
	return p
}

// newProvider returns a provider also with an error.
func newProvider(opts Options) (*Provider, error) {
	err := opts.complete()
	// The resolver lives as long as the process, as a provider cannot be closed. It has
	// no goroutine after the fleet has stopped.
	resolver, resolverErr := kubeconfig.New(opts.Kubeconfig)
	store := kubeconfigs.NewStore(resolver)
	p := &Provider{source: newSource(&opts, store)}
	var fleetErr error
	p.Fleet, fleetErr = fleet.New(fleet.Options{Source: p.source, Credentials: store, KeepDuplicates: true, Connection: opts.connection()})
	p.source.recheck = func(key inventory.Key) { p.Recheck(key) }
	return p, errors.Join(err, resolverErr, fleetErr)
}

// SetupWithManager makes the manager's local cluster the management cluster unless
// Options.Hub is set. The manager calls it for its own provider: a program need not, and
// may at any time. It calls it for a provider that is part of another one. After the
// first call further ones do nothing.
func (p *Provider) SetupWithManager(_ context.Context, mgr mcmanager.Manager) error {
	switch {
	case mgr == nil:
		return errors.New("kubeconfig provider: the manager must not be nil")
	case p.err != nil:
		return p.err
	}
	p.source.defaultHub(mgr.GetLocalManager().GetConfig())
	return nil
}

// Start implements multicluster.ProviderRunnable. The manager calls it.
func (p *Provider) Start(ctx context.Context, aware multicluster.Aware) error {
	if p.err != nil {
		return multicluster.TerminalError(p.err)
	}
	if mgr, ok := aware.(mcmanager.Manager); ok {
		if err := p.SetupWithManager(ctx, mgr); err != nil {
			return multicluster.TerminalError(err)
		}
	}
	if p.source.hub.Load() == nil {
		return multicluster.TerminalError(errors.New("kubeconfig provider: no management cluster: set Options.Hub or call SetupWithManager"))
	}
	return p.Fleet.Start(log.IntoContext(ctx, log.FromContext(ctx).WithName(p.source.options.ControllerName)), aware)
}

// Run is for programs that run the provider themselves. The manager starts its own
// provider, so for that Run only waits until the context ends. For any other, it is Start.
func (p *Provider) Run(ctx context.Context, mgr mcmanager.Manager) error {
	return runner.Run(ctx, mgr, p)
}

// Reconcile resolves the kubeconfig of the Secret that the request names again. A
// program need not call it: the provider watches the Secrets.
func (p *Provider) Reconcile(_ context.Context, req ctrl.Request) (ctrl.Result, error) {
	p.Recheck(req.NamespacedName)
	return ctrl.Result{}, nil
}

// ListClusters returns the names of the engaged clusters, in no order.
func (p *Provider) ListClusters() []multicluster.ClusterName { return p.ClusterNames() }
