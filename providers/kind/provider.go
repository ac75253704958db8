// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package kind

import (
	"context"
	"errors"
	"fmt"

	"github.com/rollcall-dev/rollcall/pkg/credentials/kubeconfig"
	"github.com/rollcall-dev/rollcall/pkg/inventory"
	"github.com/rollcall-dev/rollcall/pkg/mc/fleet"
	mcmanager "github.com/rollcall-dev/rollcall/pkg/mc/manager"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
	"github.com/rollcall-dev/rollcall/providers/internal/kubeconfigs"
	"github.com/rollcall-dev/rollcall/providers/internal/runner"
)

// Provider provides the clusters of kind. All methods may be called concurrently.
type Provider struct {
	*fleet.Fleet
	err error // of the options
}

var (
	_ multicluster.Provider         = &Provider{}
	_ multicluster.ProviderRunnable = &Provider{}
)

// New returns a provider, which the manager starts. It takes at most one Options. Errors
// in it are returned by Start.
func New(opts ...Options) *Provider {
	p, err := newProvider(opts)
	if err != nil {
		p.err = fmt.Errorf("kind provider: %w", err)
	}
	return p
}

// newProvider returns a provider also with an error.
func newProvider(opts []Options) (*Provider, error) {
	options, err := optionsOf(opts)
	// The resolver lives as long as the process, as a provider cannot be closed. It has
	// no goroutine after the fleet has stopped.
	resolver, resolverErr := kubeconfig.New(kubeconfig.Options{})
	store := kubeconfigs.NewStore(resolver)
	s := newSource(&options, store)
	p := &Provider{}
	var fleetErr error
	p.Fleet, fleetErr = fleet.New(fleet.Options{Source: s, Credentials: store, KeepDuplicates: true, Connection: options.connection()})
	s.recheck = func(key inventory.Key) { p.Recheck(key) }
	s.unhealthy = func() map[inventory.Key]bool { return unhealthy(p.Status()) }
	return p, errors.Join(err, resolverErr, fleetErr)
}

// unhealthy returns the clusters that cannot be connected or do not respond.
func unhealthy(all []fleet.ClusterStatus) map[inventory.Key]bool {
	found := map[inventory.Key]bool{}
	for i := range all {
		if all[i].State == fleet.Backoff || all[i].State == fleet.Degraded {
			found[all[i].Profile] = true
		}
	}
	return found
}

// Start implements multicluster.ProviderRunnable. The manager calls it.
func (p *Provider) Start(ctx context.Context, aware multicluster.Aware) error {
	if p.err != nil {
		return multicluster.TerminalError(p.err)
	}
	return p.Fleet.Start(ctx, aware)
}

// Run is for programs that run the provider themselves. The manager starts its own
// provider, so for that Run only waits until the context ends. For any other, it is Start.
func (p *Provider) Run(ctx context.Context, mgr mcmanager.Manager) error {
	return runner.Run(ctx, mgr, p)
}

// ListClusters returns the names of the engaged clusters, in no order.
func (p *Provider) ListClusters() []multicluster.ClusterName { return p.ClusterNames() }
