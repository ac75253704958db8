// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package clusterapi

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/rollcall-dev/rollcall/pkg/credentials/kubeconfig"
	"github.com/rollcall-dev/rollcall/pkg/inventory"
	"github.com/rollcall-dev/rollcall/pkg/mc/fleet"
	mcmanager "github.com/rollcall-dev/rollcall/pkg/mc/manager"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
	"github.com/rollcall-dev/rollcall/providers/internal/runner"
)

// Provider provides the clusters of Cluster API. All methods may be called concurrently.
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
		p.err = fmt.Errorf("cluster API provider: %w", err)
	}
	return p
}

// newProvider returns a provider also with an error.
func newProvider(opts Options) (*Provider, error) {
	// The resolver lives as long as the process, as a provider cannot be closed. It has
	// no goroutine after the fleet has stopped.
	resolver, resolverErr := kubeconfig.New(opts.Kubeconfig)
	p := &Provider{source: newSource(&opts, resolver)}
	connection, err := opts.connection(p.source.object)
	var fleetErr error
	p.Fleet, fleetErr = fleet.New(fleet.Options{Source: p.source, Credentials: p.source, KeepDuplicates: true, Connection: connection})
	p.source.recheck = func(key inventory.Key) { p.Recheck(key) }
	return p, errors.Join(err, resolverErr, fleetErr)
}

// SetupWithManager makes the manager's local cluster the management cluster unless
// Options.Hub is set. The manager calls it for its own provider: a program need not, and
// may at any time. It calls it for a provider that is part of another one. After the
// first success further calls do nothing.
func (p *Provider) SetupWithManager(mgr mcmanager.Manager) error {
	switch {
	case mgr == nil:
		return errors.New("cluster API provider: the manager must not be nil")
	case p.err != nil:
		return p.err
	}
	local := mgr.GetLocalManager()
	return p.setUp(&management{config: local.GetConfig(), scheme: local.GetScheme()})
}

func (p *Provider) setUp(m *management) error {
	if err := p.source.setUp(m); err != nil {
		return fmt.Errorf("cluster API provider: %w", err)
	}
	return nil
}

// Start implements multicluster.ProviderRunnable. The manager calls it.
func (p *Provider) Start(ctx context.Context, aware multicluster.Aware) error {
	if p.err != nil {
		return multicluster.TerminalError(p.err)
	}
	var err error
	if mgr, ok := aware.(mcmanager.Manager); ok {
		err = p.SetupWithManager(mgr)
	} else {
		err = p.setUp(&management{scheme: scheme.Scheme})
	}
	if err != nil {
		return multicluster.TerminalError(err)
	}
	return p.Fleet.Start(ctx, aware)
}

// Run is for programs that run the provider themselves. The manager starts its own
// provider, so for that Run only waits until the context ends. For any other, it is Start.
func (p *Provider) Run(ctx context.Context, mgr mcmanager.Manager) error {
	return runner.Run(ctx, mgr, p)
}

// Reconcile calls IsReady and resolves the kubeconfig again for the object that the
// request names. It returns before that is done. A program need not call it: the provider
// watches the objects and their Secrets.
func (p *Provider) Reconcile(_ context.Context, req reconcile.Request) (reconcile.Result, error) {
	p.source.evaluateAgain(keyOf(req.Namespace, req.Name))
	return reconcile.Result{}, nil
}

// ListClusters returns the names of the engaged clusters, in no order.
func (p *Provider) ListClusters() []multicluster.ClusterName { return p.ClusterNames() }
