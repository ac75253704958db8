// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package clusterinventoryapi

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/rollcall-dev/rollcall/pkg/inventory"
	"github.com/rollcall-dev/rollcall/pkg/inventory/hub"
	"github.com/rollcall-dev/rollcall/pkg/mc/fleet"
	mcmanager "github.com/rollcall-dev/rollcall/pkg/mc/manager"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
	"github.com/rollcall-dev/rollcall/providers/internal/runner"
)

// Provider provides the clusters of a hub's ClusterProfiles. All methods may be
// called concurrently.
type Provider struct {
	*fleet.Fleet
	source   *source
	strategy *strategyMethod // nil without a strategy that depends on the hub

	mu      sync.Mutex // guards isSetUp
	isSetUp bool
}

var (
	_ multicluster.Provider         = &Provider{}
	_ multicluster.ProviderRunnable = &Provider{}
)

// New returns a provider, which the manager starts.
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
	connection, err := opts.connection()
	if err != nil {
		return nil, err
	}
	f, err := fleet.New(fleet.Options{
		Source: source, Credentials: method, ClusterName: opts.ClusterName, Connection: connection,
		KeepDuplicates: opts.KeepDuplicates, TrustDomain: opts.trustDomain,
	})
	if err != nil {
		return nil, err
	}
	return &Provider{Fleet: f, source: source, strategy: strategy}, nil
}

// SetupWithManager makes the manager's local cluster the hub unless Options.Hub
// is set. The manager calls it for its own provider; a program calls it for a
// provider that is part of another one. After the first success further calls do
// nothing.
func (p *Provider) SetupWithManager(mgr mcmanager.Manager) error {
	if mgr == nil {
		return errors.New("cluster inventory API provider: the manager must not be nil")
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.isSetUp {
		return nil
	}
	local := mgr.GetLocalManager()
	p.source.defaultHub(&hubCluster{config: local.GetConfig(), cache: local.GetCache()})
	if p.strategy != nil {
		if err := p.strategy.setUp(local, p.Recheck); err != nil {
			return fmt.Errorf("cluster inventory API provider: cannot be set up: %w", err)
		}
	}
	p.isSetUp = true
	return nil
}

// Start implements multicluster.ProviderRunnable. The manager calls it.
func (p *Provider) Start(ctx context.Context, aware multicluster.Aware) error {
	if mgr, ok := aware.(mcmanager.Manager); ok {
		if err := p.SetupWithManager(mgr); err != nil {
			return multicluster.TerminalError(err)
		}
	}
	if p.source.hub.Load() == nil {
		return multicluster.TerminalError(errors.New("cluster inventory API provider: no hub: set Options.Hub or call SetupWithManager"))
	}
	return p.Fleet.Start(ctx, aware)
}

// Run is for programs that run the provider themselves. The manager starts its own
// provider, so for that Run only waits until the context ends. For any other, it is Start.
func (p *Provider) Run(ctx context.Context, mgr mcmanager.Manager) error {
	return runner.Run(ctx, mgr, p)
}

// source is the fleet's source: a hub that may not be known before Run.
type source struct {
	options   hub.Options
	selected  inventory.Predicate
	readiness *readiness
	hub       atomic.Pointer[hubCluster]
	current   atomic.Pointer[hub.Source] // nil before the first Run
}

// hubCluster is the cluster with the ClusterProfiles.
type hubCluster struct {
	config *rest.Config
	cache  cache.Informers // nil unless it is the manager's local cluster
}

func newSource(opts Options) (*source, error) {
	selected, err := opts.Selection.Predicate()
	if err != nil {
		return nil, err
	}
	s := &source{selected: selected, readiness: newReadiness(&opts), options: hub.Options{
		Namespace:        opts.Namespace,
		Namespaces:       opts.Namespaces,
		LabelSelector:    opts.LabelSelector,
		FieldSelector:    opts.FieldSelector,
		Placement:        opts.Placement,
		TrustAnnotations: opts.TrustAnnotations,
	}}
	validated := s.options
	if opts.Hub == nil {
		validated.Cache = managerCache{}
	}
	if err := validated.Validate(); err != nil {
		return nil, err
	}
	if opts.Hub != nil {
		s.defaultHub(&hubCluster{config: opts.Hub})
	}
	return s, nil
}

// managerCache stands for the manager's cache, which New does not know yet.
type managerCache struct{ cache.Informers }

// defaultHub sets the hub unless it is set already.
func (s *source) defaultHub(hub *hubCluster) { s.hub.CompareAndSwap(nil, hub) }

// Run implements inventory.Source.
func (s *source) Run(ctx context.Context, sink inventory.Sink) error {
	cluster, options := s.hub.Load(), s.options
	options.Cache = cluster.cache
	source, err := hub.New(cluster.config, options)
	if err != nil {
		return err
	}
	s.current.Store(source)
	return s.readiness.run(ctx, inventory.Select(source, s.selected), sink)
}

// PlacementStatus returns the status of Options.Placement: which profiles the decision
// names that do not exist. It is empty before the provider is started.
func (p *Provider) PlacementStatus() hub.PlacementStatus {
	if source := p.source.current.Load(); source != nil {
		return source.PlacementStatus()
	}
	return hub.PlacementStatus{}
}

// String names the source for logs.
func (s *source) String() string { return "ClusterProfiles of the hub" }
