// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/recorder"
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
	// returns the error of a component, and of the provider unless that can be
	// started again (multicluster.RestartableProvider). A failing cluster does not
	// make it fail.
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
	// In the local cluster the first List that uses the index adds it, so the
	// local cluster need not serve the kind. To add an index again with the same
	// function does nothing there; another function for the field is an error.
	// Without a provider it is the indexer of the local manager.
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

// New returns a manager for the local cluster of the config and for the clusters
// of the provider. With a nil provider it manages the local cluster alone; a nil
// pointer that has a provider's type is an error. The manager starts a provider
// that is a multicluster.ProviderRunnable, by default on the elected leader.
//
// With a provider, the cache of the local cluster repeats failed lists and watches,
// and lists all objects again when the local cluster was restored from a backup.
func New(config *rest.Config, provider multicluster.Provider, opts manager.Options, mcOpts ...Option) (Manager, error) {
	if err := checkProvider(provider); err != nil {
		return nil, err
	}
	if provider != nil {
		opts = withInformers(opts)
	}
	local, err := manager.New(config, opts)
	if err != nil {
		return nil, err
	}
	return WithMultiCluster(local, provider, mcOpts...)
}

// WithMultiCluster is New for an existing manager of controller-runtime. Start
// the result, not mgr. Use the client and the cache of the result's local manager:
// those of mgr do not have the indexes of GetFieldIndexer. The cache of mgr has its
// own informers, which do not notice that the local cluster was restored.
func WithMultiCluster(mgr manager.Manager, provider multicluster.Provider, mcOpts ...Option) (Manager, error) {
	if err := checkProvider(provider); err != nil {
		return nil, err
	}
	m := &mcManager{Manager: mgr, provider: provider}
	if provider != nil {
		m.Manager = newLocalManager(mgr)
	}
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

// mcManager implements Manager. What the two kinds of managers have in common is
// that of the local one.
type mcManager struct {
	manager.Manager // of the local cluster
	provider        multicluster.Provider
	coordinator     Coordinator

	providerOnAllReplicas bool
}

func (m *mcManager) Add(r Runnable) error {
	if err := m.Manager.Add(r); err != nil {
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
		return m.Manager, nil
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
		return m.Manager, nil
	}
	cl, err := m.GetCluster(ctx, clusterName)
	if err != nil {
		return nil, err
	}
	return &scopedManager{Manager: m.Manager, cluster: cl}, nil
}

func (m *mcManager) GetFieldIndexer() client.FieldIndexer {
	return fieldIndexer{m}
}

func (m *mcManager) GetLocalManager() manager.Manager   { return m.Manager }
func (m *mcManager) GetProvider() multicluster.Provider { return m.provider }

// fieldIndexer adds indexes to the local cluster and through the provider.
type fieldIndexer struct {
	manager *mcManager
}

func (i fieldIndexer) IndexField(ctx context.Context, obj client.Object, field string, extractValue client.IndexerFunc) error {
	if err := i.manager.Manager.GetFieldIndexer().IndexField(ctx, obj, field, extractValue); err != nil {
		return fmt.Errorf("cannot index field %q of %T in the local cluster: %w", field, obj, err)
	}
	if i.manager.provider == nil {
		return nil
	}
	return i.manager.provider.IndexField(ctx, obj, field, extractValue)
}

// scopedManager is the local manager, but for another cluster.
type scopedManager struct {
	manager.Manager
	cluster cluster.Cluster
}

func (m *scopedManager) GetHTTPClient() *http.Client          { return m.cluster.GetHTTPClient() }
func (m *scopedManager) GetConfig() *rest.Config              { return m.cluster.GetConfig() }
func (m *scopedManager) GetCache() cache.Cache                { return m.cluster.GetCache() }
func (m *scopedManager) GetScheme() *runtime.Scheme           { return m.cluster.GetScheme() }
func (m *scopedManager) GetClient() client.Client             { return m.cluster.GetClient() }
func (m *scopedManager) GetFieldIndexer() client.FieldIndexer { return m.cluster.GetFieldIndexer() }
func (m *scopedManager) GetRESTMapper() meta.RESTMapper       { return m.cluster.GetRESTMapper() }
func (m *scopedManager) GetAPIReader() client.Reader          { return m.cluster.GetAPIReader() }

func (m *scopedManager) GetEventRecorder(name string) recorder.EventRecorder {
	return m.cluster.GetEventRecorder(name)
}

func (m *scopedManager) GetEventRecorderFor(name string) record.EventRecorder {
	return m.cluster.GetEventRecorderFor(name) //nolint:staticcheck // deprecated, but part of the interface
}
