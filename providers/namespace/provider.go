// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package namespace

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/healthz"

	"github.com/rollcall-dev/rollcall/pkg/mc/fleet"
	mcmanager "github.com/rollcall-dev/rollcall/pkg/mc/manager"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
	"github.com/rollcall-dev/rollcall/providers/internal/runner"
)

// Options of a provider. The zero value is usable.
type Options struct {
	// Selector selects the namespaces by their labels. A namespace that is no longer
	// selected is removed. Defaults to all namespaces.
	Selector labels.Selector

	// Connection configures how clusters are connected and monitored. Options that
	// concern the creation of clusters do not apply. All namespaces share one health
	// probe. Reads of the client of a namespace end after ConnectTimeout.
	Connection fleet.ConnectionOptions
}

// Provider provides the namespaces of one cluster as clusters. All methods may be called
// concurrently.
type Provider struct {
	cluster cluster.Cluster
	fleet   *fleet.Fleet
	err     error // of New
}

var (
	_ multicluster.Provider         = &Provider{}
	_ multicluster.ProviderRunnable = &Provider{}
)

// New returns a provider of all namespaces of the cluster. The caller runs the cluster.
func New(cl cluster.Cluster) *Provider { return NewWithOptions(cl, Options{}) }

// NewWithOptions is New with options.
func NewWithOptions(cl cluster.Cluster, opts Options) *Provider {
	p := &Provider{cluster: cl}
	if cl == nil {
		p.err = errors.New("namespace provider: the cluster must not be nil")
		return p
	}
	if opts.Selector == nil {
		opts.Selector = labels.Everything()
	}
	var err error
	p.fleet, err = fleet.New(fleet.Options{
		Source:    &source{cluster: cl, selector: opts.Selector},
		Connector: newConnector(cl, opts.Connection),
		// Each namespace is a cluster, whatever its labels say.
		KeepDuplicates: true,
		Connection:     opts.Connection,
	})
	if err != nil {
		p.err = fmt.Errorf("namespace provider: %w", err)
	}
	return p
}

// Start engages the namespaces until the context ends. The manager calls it.
func (p *Provider) Start(ctx context.Context, aware multicluster.Aware) error {
	if p.err != nil {
		return multicluster.TerminalError(p.err)
	}
	return p.fleet.Start(ctx, aware)
}

// Run is for programs that run the provider themselves. The manager starts its own
// provider, so for that Run only waits until the context ends. For any other, it is Start.
func (p *Provider) Run(ctx context.Context, mgr mcmanager.Manager) error {
	return runner.Run(ctx, mgr, p)
}

// Get returns the cluster of the namespace of that name. The errors are
// multicluster.ErrClusterNotFound and multicluster.ErrClusterNotReady.
func (p *Provider) Get(ctx context.Context, clusterName multicluster.ClusterName) (cluster.Cluster, error) {
	if p.err != nil {
		return nil, multicluster.NotFoundError(clusterName)
	}
	return p.fleet.Get(ctx, clusterName)
}

// IndexField adds the index for all namespaces. It may be called at any time and sends
// no request: the first List that uses the index adds it to the shared informer. The
// function is called with the objects of all namespaces of the cluster.
func (p *Provider) IndexField(ctx context.Context, obj client.Object, field string, extractValue client.IndexerFunc) error {
	if p.err != nil {
		return p.err
	}
	return p.fleet.IndexField(ctx, obj, field, extractValue)
}

// ClusterNames returns the names of the engaged namespaces, in no order.
func (p *Provider) ClusterNames() []multicluster.ClusterName {
	if p.err != nil {
		return nil
	}
	return p.fleet.ClusterNames()
}

// Status returns the status of each namespace, none before Start.
func (p *Provider) Status() []fleet.ClusterStatus {
	if p.err != nil {
		return nil
	}
	return p.fleet.Status()
}

// StatusHandler serves Status as that of a fleet does.
func (p *Provider) StatusHandler() http.Handler {
	return fleet.StatusHandler(func() ([]fleet.ClusterStatus, bool) { return p.Status(), p.ReadyCheck(0)(nil) == nil })
}

// ReadyCheck is that of a fleet.
func (p *Provider) ReadyCheck(share float64) healthz.Checker {
	if p.err != nil {
		return func(*http.Request) error { return p.err }
	}
	return p.fleet.ReadyCheck(share)
}

// LeaderReadyCheck is that of a fleet.
func (p *Provider) LeaderReadyCheck(share float64, elected <-chan struct{}) healthz.Checker {
	if p.err != nil {
		return func(*http.Request) error { return p.err }
	}
	return p.fleet.LeaderReadyCheck(share, elected)
}
