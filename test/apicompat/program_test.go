// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package apicompat

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/rollcall-dev/rollcall/pkg/mc"
	mcbuilder "github.com/rollcall-dev/rollcall/pkg/mc/builder"
	"github.com/rollcall-dev/rollcall/pkg/mc/clusters"
	mccontext "github.com/rollcall-dev/rollcall/pkg/mc/context"
	mchandler "github.com/rollcall-dev/rollcall/pkg/mc/handler"
	mcmanager "github.com/rollcall-dev/rollcall/pkg/mc/manager"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
	mcreconcile "github.com/rollcall-dev/rollcall/pkg/mc/reconcile"
)

// This is a program as users of the existing runtime write it. Every team has a
// home cluster, and Secrets in any cluster. The program counts them in the home
// cluster, and collects the ConfigMaps of all clusters in the local one.

const (
	teamLabel      = "team"
	homeAnnotation = "home"
)

// setUp adds everything to a new manager. The program's main function would be:
//
//	mgr, err := setUp(mc.GetConfigOrDie(), newDirectory(configs), mc.Options{})
//	…
//	err = mgr.Start(mc.SetupSignalHandler())
func setUp(local *rest.Config, provider *directory, opts mc.Options) (mc.Manager, error) {
	opts.Controller = config.Controller{SkipNameValidation: ptr.To(true)}
	mgr, err := mc.NewManager(local, provider, opts)
	if err != nil {
		return nil, err
	}
	byTeam := func(obj client.Object) []string { return []string{obj.GetLabels()[teamLabel]} }
	if err := provider.IndexField(context.Background(), &corev1.Secret{}, teamLabel, byTeam); err != nil {
		return nil, err
	}

	hasLabel := predicate.NewPredicateFuncs(func(obj client.Object) bool { return obj.GetLabels()[teamLabel] != "" })
	err = mc.NewControllerManagedBy(mgr).
		Named("collect").
		For(&corev1.ConfigMap{},
			mcbuilder.WithPredicates(hasLabel),
			mcbuilder.WithEngageWithLocalCluster(false),
			mcbuilder.WithEngageWithProviderClusters(true)).
		Complete(&collector{Manager: mgr})
	if err != nil {
		return nil, fmt.Errorf("controller collect: %w", err)
	}

	err = mcbuilder.TypedControllerManagedBy[teamRequest](mgr).
		Named("count").
		Watches(&corev1.Secret{}, enqueueTeamAtHome, mcbuilder.WithPredicates(hasLabel)).
		WithOptions(controller.TypedOptions[teamRequest]{MaxConcurrentReconciles: 2}).
		Complete(&counter{Manager: mgr})
	if err != nil {
		return nil, fmt.Errorf("controller count: %w", err)
	}

	return mgr, mc.NewWebhookManagedBy(mgr.GetLocalManager(), &corev1.ConfigMap{}).
		WithDefaulter(teamDefaulter{}).
		Complete()
}

// directory is the program's own provider.
type directory struct {
	clusters.Clusters[cluster.Cluster]
	configs map[multicluster.ClusterName]*rest.Config
}

var (
	_ multicluster.Provider         = &directory{}
	_ multicluster.ProviderRunnable = &directory{}
)

func newDirectory(configs map[multicluster.ClusterName]*rest.Config) *directory {
	d := &directory{Clusters: clusters.New[cluster.Cluster](), configs: configs}
	d.WaitCacheTimeout = 10 * time.Second
	return d
}

func (d *directory) Start(ctx context.Context, aware multicluster.Aware) error {
	for name, config := range d.configs {
		cl, err := cluster.New(config)
		if err != nil {
			return err
		}
		if err := d.AddOrReplace(ctx, name, cl, aware); err != nil {
			return err
		}
	}
	<-ctx.Done()
	return nil
}

// collector copies ConfigMaps of all clusters to the local one.
type collector struct {
	mcmanager.Manager
}

var _ mcreconcile.Reconciler = &collector{}

func (c *collector) Reconcile(ctx context.Context, req mc.Request) (mc.Result, error) {
	mc.LoggerFrom(ctx).V(1).Info("Collecting")
	cl, err := c.GetCluster(ctx, req.ClusterName)
	if err != nil {
		return mc.Result{}, err
	}
	original := &corev1.ConfigMap{}
	if err := cl.GetClient().Get(ctx, req.NamespacedName, original); err != nil {
		return mc.Result{}, client.IgnoreNotFound(err)
	}
	collected := &corev1.ConfigMap{ObjectMeta: mc.ObjectMeta{
		Namespace: req.Namespace,
		Name:      fmt.Sprintf("%s-%s", req.Cluster(), req.Name),
	}}
	_, err = mc.CreateOrUpdate(ctx, c.GetLocalManager().GetClient(), collected, func() error {
		collected.Data = original.Data
		return nil
	})
	return mc.Result{}, err
}

// team is a request without a cluster, teamRequest one with a cluster.
type team string

type teamRequest = mcreconcile.WithCluster[team]

// enqueueTeamAtHome enqueues a request for another cluster: the home of the
// Secret's team.
func enqueueTeamAtHome(name multicluster.ClusterName, _ cluster.Cluster) handler.TypedEventHandler[client.Object, teamRequest] {
	return mchandler.TypedEnqueueRequestsFromMapFuncWithClusterPreservation(func(_ context.Context, obj client.Object) []teamRequest {
		home := multicluster.ClusterName(obj.GetAnnotations()[homeAnnotation])
		if home.Empty() {
			home = name
		}
		return []teamRequest{{Request: team(obj.GetLabels()[teamLabel]), ClusterName: home}}
	})
}

// counter maintains a ConfigMap in a team's home cluster with the number of the
// team's Secrets in each cluster.
type counter struct {
	mcmanager.Manager
}

func (c *counter) Reconcile(ctx context.Context, req teamRequest) (reconcile.Result, error) {
	if name, ok := mccontext.ClusterFrom(ctx); !ok || name != req.Cluster() {
		return reconcile.Result{}, errors.New("the context is that of another cluster")
	}
	home, err := c.ClusterFromContext(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}
	counts := map[string]string{}
	for _, name := range c.GetProvider().(*directory).ClusterNames() {
		cl, err := c.GetCluster(ctx, name)
		if errors.Is(err, multicluster.ErrClusterNotFound) {
			continue
		}
		if err != nil {
			return reconcile.Result{}, err
		}
		secrets := &corev1.SecretList{}
		if err := cl.GetClient().List(ctx, secrets, client.MatchingFields{teamLabel: string(req.Request)}); err != nil {
			return reconcile.Result{}, err
		}
		counts[name.String()] = fmt.Sprint(len(secrets.Items))
	}

	report := &corev1.ConfigMap{}
	key := client.ObjectKey{Namespace: metav1.NamespaceDefault, Name: "team-" + string(req.Request)}
	err = home.GetAPIReader().Get(ctx, key, report)
	switch {
	case apierrors.IsNotFound(err):
		report.Namespace, report.Name, report.Data = key.Namespace, key.Name, counts
		return reconcile.Result{}, home.GetClient().Create(ctx, report)
	case err != nil:
		return reconcile.Result{}, err
	}
	report.Data = counts
	return reconcile.Result{}, home.GetClient().Update(ctx, report)
}

// teamDefaulter sets a team on every ConfigMap of the local cluster.
type teamDefaulter struct{}

func (teamDefaulter) Default(_ context.Context, cm *corev1.ConfigMap) error {
	if cm.Labels[teamLabel] == "" {
		metav1.SetMetaDataLabel(&cm.ObjectMeta, teamLabel, "none")
	}
	return nil
}
