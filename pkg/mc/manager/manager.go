// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	mccontext "github.com/rollcall-dev/rollcall/pkg/mc/context"
	"github.com/rollcall-dev/rollcall/pkg/mc/manager/coordinator/basic"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
)

// LocalCluster is the name of the local cluster, the one of the manager's own
// rest.Config.
const LocalCluster = multicluster.ClusterName("")

// Options are those of controller-runtime's manager, for the local cluster and
// the process.
type Options = manager.Options

// Manager runs the components of a multi-cluster controller. All methods may
// be called from any goroutine.
type Manager interface {
	// Add starts the component when the manager starts, as controller-runtime's
	// manager does, and engages it with every cluster, present and future.
	Add(Runnable) error

	// Elected is closed when this process has been elected leader, or when it
	// starts without leader election.
	Elected() <-chan struct{}

	// AddMetricsServerExtraHandler serves a handler beside the metrics.
	AddMetricsServerExtraHandler(path string, handler http.Handler) error

	// AddHealthzCheck adds a check to the liveness probe.
	AddHealthzCheck(name string, check healthz.Checker) error

	// AddReadyzCheck adds a check to the readiness probe.
	AddReadyzCheck(name string, check healthz.Checker) error

	// Start runs the provider and all components until the context ends. It
	// returns the error of a component, and of the provider if that is a
	// multicluster.TerminalError. A failing cluster does not make it fail.
	Start(ctx context.Context) error

	// GetWebhookServer returns the webhook server of this process.
	GetWebhookServer() webhook.Server

	// GetLogger returns the manager's logger.
	GetLogger() logr.Logger

	// GetControllerOptions returns the defaults for all controllers.
	GetControllerOptions() config.Controller

	// GetCluster returns the cluster of that name, LocalCluster being the local
	// one. It never blocks. The error is multicluster.ErrClusterNotFound (by
	// errors.Is) if the cluster is not engaged.
	GetCluster(ctx context.Context, clusterName multicluster.ClusterName) (cluster.Cluster, error)

	// ClusterFromContext returns the cluster whose name the context carries, as
	// the context of a reconcile does.
	ClusterFromContext(ctx context.Context) (cluster.Cluster, error)

	// GetManager returns a manager of controller-runtime whose cluster is the
	// one of that name. What is added to it runs with this manager, also after
	// the cluster is disengaged. The errors are those of GetCluster.
	GetManager(ctx context.Context, clusterName multicluster.ClusterName) (manager.Manager, error)

	// GetLocalManager returns controller-runtime's manager of the local cluster.
	GetLocalManager() manager.Manager

	// GetProvider returns the provider, nil if there is none.
	GetProvider() multicluster.Provider

	// GetFieldIndexer returns an indexer that adds an index to the caches of
	// the local cluster and of all the provider's clusters, present and future.
	// An index makes a cache watch the kind, so the local cluster must serve it
	// and allow that; see WithLocalFieldIndexes.
	GetFieldIndexer() client.FieldIndexer

	multicluster.Aware
}

// Runnable is a component of a multi-cluster controller.
type Runnable interface {
	manager.Runnable
	multicluster.Aware
}

// Coordinator decides which clusters are engaged with this process' components.
type Coordinator interface {
	// AddAware adds a component, to be engaged with clusters, present and future.
	AddAware(multicluster.Aware)

	// Engage is called by the provider through the manager for each cluster
	// that it has connected. The context ends when the cluster is disengaged. It is
	// passed to the components with all its values.
	Engage(ctx context.Context, name multicluster.ClusterName, cl cluster.Cluster) error

	// Runnable returns what the manager is to run for the coordinator, nil for
	// nothing.
	Runnable() manager.Runnable
}

// Option configures a Manager.
type Option func(*mcManager)

// WithCoordinator replaces the coordinator, which by default engages every
// cluster with every component in this process.
func WithCoordinator(c Coordinator) Option {
	return func(m *mcManager) {
		m.coordinator = c
	}
}

// WithLocalFieldIndexes sets whether GetFieldIndexer adds indexes to the cache
// of the local cluster too. Defaults to true. Set it to false if the local
// cluster is a hub that does not serve the kinds of the others, or does not let
// this process watch them: its cache would never sync.
func WithLocalFieldIndexes(index bool) Option {
	return func(m *mcManager) {
		m.noLocalIndexes = !index
	}
}

// New returns a manager for the local cluster of the config and for the clusters
// of the provider. With a nil provider it manages the local cluster alone; a nil
// pointer that has a provider's type is an error. The manager starts a provider
// that is a multicluster.ProviderRunnable, by default on the elected leader.
func New(config *rest.Config, provider multicluster.Provider, opts manager.Options, mcOpts ...Option) (Manager, error) {
	if err := checkProvider(provider); err != nil {
		return nil, err
	}
	local, err := manager.New(config, opts)
	if err != nil {
		return nil, err
	}
	return WithMultiCluster(local, provider, mcOpts...)
}

// WithMultiCluster is New for an existing manager of controller-runtime. Start
// the result, not mgr.
func WithMultiCluster(mgr manager.Manager, provider multicluster.Provider, mcOpts ...Option) (Manager, error) {
	if err := checkProvider(provider); err != nil {
		return nil, err
	}
	m := &mcManager{local: mgr, provider: provider}
	for _, opt := range mcOpts {
		opt(m)
	}
	if m.coordinator == nil {
		m.coordinator = basic.New()
	}
	if r := m.coordinator.Runnable(); r != nil {
		if err := mgr.Add(r); err != nil {
			return nil, fmt.Errorf("cannot add the coordinator: %w", err)
		}
	}
	if runnable, ok := provider.(multicluster.ProviderRunnable); ok {
		r := &providerRunnable{
			provider: runnable, aware: m, onAllReplicas: m.providerOnAllReplicas,
			log: mgr.GetLogger().WithName("provider"), scheme: mgr.GetScheme(),
		}
		if err := mgr.Add(r); err != nil {
			return nil, fmt.Errorf("cannot add the provider: %w", err)
		}
	}
	return m, nil
}

// mcManager implements Manager.
type mcManager struct {
	local       manager.Manager
	provider    multicluster.Provider
	coordinator Coordinator

	providerOnAllReplicas bool
	noLocalIndexes        bool
}

func (m *mcManager) Add(r Runnable) error {
	if err := m.local.Add(r); err != nil {
		return err
	}
	m.coordinator.AddAware(r)
	return nil
}

func (m *mcManager) Engage(ctx context.Context, name multicluster.ClusterName, cl cluster.Cluster) error {
	return m.coordinator.Engage(ctx, name, cl)
}

func (m *mcManager) GetCluster(ctx context.Context, clusterName multicluster.ClusterName) (cluster.Cluster, error) {
	if clusterName == LocalCluster {
		return m.local, nil
	}
	if m.provider == nil {
		return nil, multicluster.NotFoundError(clusterName)
	}
	return m.provider.Get(ctx, clusterName)
}

func (m *mcManager) ClusterFromContext(ctx context.Context) (cluster.Cluster, error) {
	clusterName, ok := mccontext.ClusterFrom(ctx)
	if !ok {
		return nil, errors.New("no cluster name in the context: use the context of a reconcile, or add one with WithCluster of pkg/mc/context")
	}
	return m.GetCluster(ctx, clusterName)
}

func (m *mcManager) GetManager(ctx context.Context, clusterName multicluster.ClusterName) (manager.Manager, error) {
	if clusterName == LocalCluster {
		return m.local, nil
	}
	cl, err := m.GetCluster(ctx, clusterName)
	if err != nil {
		return nil, err
	}
	return &scopedManager{Manager: m.local, cluster: cl}, nil
}

func (m *mcManager) GetFieldIndexer() client.FieldIndexer {
	return fieldIndexer{m}
}

func (m *mcManager) Elected() <-chan struct{}                { return m.local.Elected() }
func (m *mcManager) Start(ctx context.Context) error         { return m.local.Start(ctx) }
func (m *mcManager) GetWebhookServer() webhook.Server        { return m.local.GetWebhookServer() }
func (m *mcManager) GetLogger() logr.Logger                  { return m.local.GetLogger() }
func (m *mcManager) GetControllerOptions() config.Controller { return m.local.GetControllerOptions() }
func (m *mcManager) GetLocalManager() manager.Manager        { return m.local }
func (m *mcManager) GetProvider() multicluster.Provider      { return m.provider }

func (m *mcManager) AddMetricsServerExtraHandler(path string, handler http.Handler) error {
	return m.local.AddMetricsServerExtraHandler(path, handler)
}

func (m *mcManager) AddHealthzCheck(name string, check healthz.Checker) error {
	return m.local.AddHealthzCheck(name, check)
}

func (m *mcManager) AddReadyzCheck(name string, check healthz.Checker) error {
	return m.local.AddReadyzCheck(name, check)
}

// fieldIndexer adds indexes to the local cluster and through the provider.
type fieldIndexer struct {
	*mcManager
}

func (i fieldIndexer) IndexField(ctx context.Context, obj client.Object, field string, extractValue client.IndexerFunc) error {
	if !i.noLocalIndexes {
		if err := i.local.GetFieldIndexer().IndexField(ctx, obj, field, extractValue); err != nil {
			return fmt.Errorf("cannot index field %q of %T in the local cluster: %w", field, obj, err)
		}
	}
	if i.provider == nil {
		return nil
	}
	return i.provider.IndexField(ctx, obj, field, extractValue)
}
