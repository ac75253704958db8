// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package clusterinventoryapi

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/rollcall-dev/rollcall/pkg/mc/fleet"
	mcmanager "github.com/rollcall-dev/rollcall/pkg/mc/manager"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
)

// Provider provides the clusters of a hub's ClusterProfiles. All methods may
// be called from any goroutine.
type Provider struct {
	*fleet.Fleet
	source   *source
	strategy *strategyMethod // nil if there is none

	mu       sync.Mutex // guards what follows
	setUp    bool
	setUpErr error
}

var (
	_ multicluster.Provider         = &Provider{}
	_ multicluster.ProviderRunnable = &Provider{}
)

// New returns a provider. It does nothing before its manager starts.
func New(opts Options) (*Provider, error) {
	p, err := newProvider(opts)
	if err != nil {
		return nil, fmt.Errorf("cluster inventory API provider: %w", err)
	}
	return p, nil
}

func newProvider(opts Options) (*Provider, error) {
	method, strategy, err := newMethod(opts)
	if err != nil {
		return nil, err
	}
	source, err := newSource(opts)
	if err != nil {
		return nil, err
	}
	f, err := fleet.New(fleet.Options{
		Source:      source,
		Credentials: method,
		ClusterName: opts.ClusterName,
		Connection: fleet.ConnectionOptions{
			RESTOptions:       opts.RESTOptions,
			ClusterOptions:    opts.ClusterOptions,
			ClusterOptionsFor: opts.ClusterOptionsFor,
			NewCluster:        opts.NewCluster,
			ConnectTimeout:    opts.ConnectTimeout,
			StartupLimit:      opts.StartupLimit,
			Probe:             opts.Probe,
			MinBackoff:        opts.MinBackoff,
			MaxBackoff:        opts.MaxBackoff,
			Clock:             opts.Clock,
		},
	})
	if err != nil {
		return nil, err
	}
	return &Provider{Fleet: f, source: source, strategy: strategy}, nil
}

// SetupWithManager makes the manager's local cluster the hub unless
// Options.Hub names one. A program needs to call it only if the provider is
// not itself the manager's provider but part of one. It may be called more than
// once; the first call counts, also where it has failed: part of what it sets
// up may be the manager's already.
func (p *Provider) SetupWithManager(mgr mcmanager.Manager) error {
	if mgr == nil {
		return errors.New("cluster inventory API provider: the manager must not be nil")
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.setUp {
		p.setUp = true
		p.source.defaultHub(mgr.GetLocalManager().GetConfig())
		if p.strategy != nil {
			p.setUpErr = p.strategy.setUp(p, mgr)
		}
	}
	if p.setUpErr != nil {
		return fmt.Errorf("cluster inventory API provider: cannot be set up: %w", p.setUpErr)
	}
	return nil
}

// Start is called by the manager.
func (p *Provider) Start(ctx context.Context, aware multicluster.Aware) error {
	if mgr, ok := aware.(mcmanager.Manager); ok {
		if err := p.SetupWithManager(mgr); err != nil {
			return multicluster.TerminalError(err)
		}
	}
	if p.source.hub.Load() == nil {
		return multicluster.TerminalError(errors.New("cluster inventory API provider: no hub known: set Options.Hub or call SetupWithManager"))
	}
	return p.Fleet.Start(ctx, aware)
}
