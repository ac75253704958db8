// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package single

import (
	"context"
	"fmt"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/healthz"

	"github.com/rollcall-dev/rollcall/pkg/inventory"
	"github.com/rollcall-dev/rollcall/pkg/mc/fleet"
	mcmanager "github.com/rollcall-dev/rollcall/pkg/mc/manager"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
	"github.com/rollcall-dev/rollcall/providers/internal/runner"
)

// Provider provides one cluster. All methods may be called concurrently.
type Provider struct {
	name    multicluster.ClusterName
	cluster cluster.Cluster
	fleet   *fleet.Fleet
	err     error // of New
}

var (
	_ multicluster.Provider         = &Provider{}
	_ multicluster.ProviderRunnable = &Provider{}
)

// New returns a provider of the cluster under that name, which must not be empty.
// The caller runs the cluster.
func New(name multicluster.ClusterName, cl cluster.Cluster) *Provider {
	p := &Provider{name: name, cluster: cl}
	if cl == nil {
		p.err = fmt.Errorf("single provider %q: the cluster must not be nil", name)
		return p
	}
	profile, err := inventory.Synthesize(inventory.Synthetic{ClusterName: string(name), Manager: "single"})
	if err == nil {
		p.fleet, err = fleet.New(fleet.Options{
			Source: inventory.SourceFunc(func(ctx context.Context, sink inventory.Sink) error {
				sink.Put(profile)
				sink.Synced()
				<-ctx.Done()
				return nil
			}),
			Connector: connector{cl},
		})
	}
	if err != nil {
		p.err = fmt.Errorf("single provider %q: %w", name, err)
	}
	return p
}

// Start engages the cluster until the context ends. The manager calls it.
func (p *Provider) Start(ctx context.Context, mcAware multicluster.Aware) error {
	if p.err != nil {
		return multicluster.TerminalError(p.err)
	}
	return p.fleet.Start(ctx, mcAware)
}

// Run is for programs that run the provider themselves. The manager starts its own
// provider, so for that Run only waits until the context ends. For any other, it is Start.
func (p *Provider) Run(ctx context.Context, mgr mcmanager.Manager) error {
	return runner.Run(ctx, mgr, p)
}

// Get returns the cluster, also before it is engaged. The error is
// multicluster.ErrClusterNotFound for any other name.
func (p *Provider) Get(ctx context.Context, clusterName multicluster.ClusterName) (cluster.Cluster, error) {
	if clusterName != p.name || p.err != nil {
		return nil, multicluster.NotFoundError(clusterName)
	}
	if engaged, err := p.fleet.Get(ctx, clusterName); err == nil {
		return engaged, nil // the one that controllers have
	}
	return p.cluster, nil
}

// IndexField adds the index to the cache of the cluster.
func (p *Provider) IndexField(ctx context.Context, obj client.Object, field string, extractValue client.IndexerFunc) error {
	if p.err != nil {
		return p.err
	}
	return p.cluster.GetFieldIndexer().IndexField(ctx, obj, field, extractValue)
}

// ClusterNames returns the name of the cluster if it is engaged.
func (p *Provider) ClusterNames() []multicluster.ClusterName {
	if p.err != nil {
		return nil
	}
	return p.fleet.ClusterNames()
}

// ReadyCheck is that of a fleet.
func (p *Provider) ReadyCheck(share float64) healthz.Checker {
	if p.err != nil {
		return func(*http.Request) error { return p.err }
	}
	return p.fleet.ReadyCheck(share)
}

// Status returns the status of the cluster, none before Start.
func (p *Provider) Status() []fleet.ClusterStatus {
	if p.err != nil {
		return nil
	}
	return p.fleet.Status()
}

// connector is the fleet.Connector of the cluster.
type connector struct{ cluster cluster.Cluster }

// Connect implements fleet.Connector.
func (c connector) Connect(context.Context, *inventory.Profile) (*fleet.Connection, error) {
	connection := &fleet.Connection{Cluster: running{c.cluster}, Fingerprint: "single", Probe: c.probe}
	if config := c.cluster.GetConfig(); config != nil {
		connection.Server = config.Host
	}
	return connection, nil
}

// probe returns the UID of the namespace kube-system, "" if it cannot be read.
func (c connector) probe(ctx context.Context) (uid string, err error) {
	namespace := &corev1.Namespace{}
	err = c.cluster.GetAPIReader().Get(ctx, client.ObjectKey{Name: metav1.NamespaceSystem}, namespace)
	if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
		return "", nil
	}
	return string(namespace.UID), err
}

// running is a cluster that other code runs.
type running struct{ cluster.Cluster }

// Start waits for the end of the engagement.
func (running) Start(ctx context.Context) error {
	<-ctx.Done()
	return nil
}
