// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package clusterinventoryapi

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/rollcall-dev/rollcall/pkg/credentials"
	"github.com/rollcall-dev/rollcall/pkg/inventory"
	"github.com/rollcall-dev/rollcall/pkg/inventory/hub"
	"github.com/rollcall-dev/rollcall/pkg/mc/fleet"
	mcmanager "github.com/rollcall-dev/rollcall/pkg/mc/manager"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
	"github.com/rollcall-dev/rollcall/providers/cluster-inventory-api/kubeconfigstrategy"
)

// Options say which clusters are provided and how they are connected.
type Options struct {
	// Credentials opens the clusters. Required unless there is a
	// KubeconfigStrategyOption. The provider does not close it.
	Credentials credentials.Method

	// KubeconfigStrategyOption opens the clusters in the place of Credentials.
	KubeconfigStrategyOption kubeconfigstrategy.Option

	// Hub leads to the cluster with the ClusterProfiles. Defaults to the
	// manager's local cluster.
	Hub *rest.Config

	// Namespace is one namespace of the hub that is read, besides Namespaces.
	Namespace string

	// Namespaces of the hub that are read. Defaults, together with Namespace, to
	// all.
	Namespaces []string

	// LabelSelector selects the profiles, in the hub's API server. Defaults to
	// all.
	LabelSelector labels.Selector

	// Placement names a decision of a scheduler (KEP-5313): only the clusters
	// that it has decided on are provided. Defaults to none.
	Placement *hub.Placement

	// Selection selects by what profiles say, in this process. Defaults to all.
	Selection inventory.Selection

	// IsReady says whether the cluster of a profile is to be engaged, after
	// Selection. Defaults to all.
	IsReady func(ctx context.Context, clp *inventory.Profile) bool

	// ClusterOptions are those of controller-runtime's clusters.
	ClusterOptions []cluster.Option

	// RESTOptions change the rest.Config of each cluster before it is used.
	RESTOptions []func(cfg *rest.Config) error

	// NewCluster makes the cluster of a profile. It must use the config's
	// transport. Defaults to cluster.New.
	NewCluster func(ctx context.Context, clp *inventory.Profile, cfg *rest.Config, opts ...cluster.Option) (cluster.Cluster, error)
}

// Provider provides the clusters of a hub's ClusterProfiles. All methods may
// be called from any goroutine.
type Provider struct {
	*fleet.Fleet
	options  hub.Options
	strategy *strategyMethod // nil if there is none

	mu    sync.Mutex // guards what follows
	hub   *rest.Config
	setUp bool
}

var (
	_ multicluster.Provider         = &Provider{}
	_ multicluster.ProviderRunnable = &Provider{}
)

// New returns a provider. It does nothing before its manager starts.
func New(opts Options) (*Provider, error) {
	method, strategy, err := newMethod(opts)
	if err != nil {
		return nil, fmt.Errorf("cluster inventory API provider: %w", err)
	}
	selected, err := opts.Selection.Predicate()
	if err != nil {
		return nil, fmt.Errorf("cluster inventory API provider: %w", err)
	}
	if err := opts.Placement.Validate(); err != nil {
		return nil, fmt.Errorf("cluster inventory API provider: %w", err)
	}
	p := &Provider{strategy: strategy, hub: opts.Hub, options: hub.Options{
		Namespace:     opts.Namespace,
		Namespaces:    opts.Namespaces,
		LabelSelector: opts.LabelSelector,
		Placement:     opts.Placement,
	}}
	var isReady func(*inventory.Profile) bool
	if opts.IsReady != nil {
		isReady = func(profile *inventory.Profile) bool { return opts.IsReady(context.Background(), profile) }
	}
	p.Fleet, err = fleet.New(fleet.Options{
		Source:         inventory.Select(inventory.SourceFunc(p.read), selected),
		Credentials:    method,
		IsReady:        isReady,
		ClusterOptions: opts.ClusterOptions,
		RESTOptions:    opts.RESTOptions,
		NewCluster:     opts.NewCluster,
	})
	if err != nil {
		return nil, fmt.Errorf("cluster inventory API provider: %w", err)
	}
	return p, nil
}

// SetupWithManager makes the manager's local cluster the hub unless
// Options.Hub names one. A program needs to call it only if the provider is
// not itself the manager's provider but part of one. It may be called more than
// once; the first call counts.
func (p *Provider) SetupWithManager(mgr mcmanager.Manager) error {
	if mgr == nil {
		return errors.New("cluster inventory API provider: the manager must not be nil")
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.setUp {
		return nil
	}
	if p.hub == nil {
		p.hub = mgr.GetLocalManager().GetConfig()
	}
	if p.strategy != nil {
		if err := p.strategy.setUp(p, mgr); err != nil {
			return fmt.Errorf("cluster inventory API provider: %w", err)
		}
	}
	p.setUp = true
	return nil
}

// Start is called by the manager.
func (p *Provider) Start(ctx context.Context, aware multicluster.Aware) error {
	if mgr, ok := aware.(mcmanager.Manager); ok {
		if err := p.SetupWithManager(mgr); err != nil {
			return err
		}
	}
	if p.hubConfig() == nil {
		return multicluster.TerminalError(errors.New("cluster inventory API provider: no hub known: set Options.Hub or call SetupWithManager"))
	}
	return p.Fleet.Start(ctx, aware)
}

// read is the fleet's source.
func (p *Provider) read(ctx context.Context, sink inventory.Sink) error {
	source, err := hub.New(p.hubConfig(), p.options)
	if err != nil {
		return err
	}
	return source.Run(ctx, sink)
}

func (p *Provider) hubConfig() *rest.Config {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.hub
}
