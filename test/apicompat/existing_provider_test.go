// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package apicompat

import (
	"context"
	"fmt"
	"sync"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/rollcall-dev/rollcall/pkg/mc"
	"github.com/rollcall-dev/rollcall/pkg/mc/clusters"
	mcmanager "github.com/rollcall-dev/rollcall/pkg/mc/manager"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
)

// These are two providers as they are written for the existing runtime. Neither is started
// by the manager: a controller of the local cluster adds a cluster for each Secret.

// existingProvider is what the test needs of them.
type existingProvider interface {
	multicluster.Provider
	SetupWithManager(ctx context.Context, mgr mcmanager.Manager) error
}

// engaging keeps its clusters, runs them, and calls mgr.Engage.
type engaging struct {
	configs map[string]*rest.Config
	mgr     mcmanager.Manager

	lock     sync.RWMutex
	clusters map[multicluster.ClusterName]cluster.Cluster
	cancel   map[multicluster.ClusterName]context.CancelFunc
	indexes  []clusters.Index
}

func (p *engaging) SetupWithManager(_ context.Context, mgr mcmanager.Manager) error {
	p.mgr = mgr
	p.clusters, p.cancel = map[multicluster.ClusterName]cluster.Cluster{}, map[multicluster.ClusterName]context.CancelFunc{}
	return ctrl.NewControllerManagedBy(mgr.GetLocalManager()).For(&corev1.Secret{}).Complete(p)
}

func (p *engaging) Get(_ context.Context, name multicluster.ClusterName) (cluster.Cluster, error) {
	p.lock.RLock()
	defer p.lock.RUnlock()
	if cl, ok := p.clusters[name]; ok {
		return cl, nil
	}
	return nil, multicluster.ErrClusterNotFound
}

func (p *engaging) IndexField(ctx context.Context, obj client.Object, field string, extract client.IndexerFunc) error {
	p.lock.Lock()
	defer p.lock.Unlock()
	p.indexes = append(p.indexes, clusters.Index{Object: obj, Field: field, Extractor: extract})
	for _, cl := range p.clusters {
		if err := cl.GetFieldIndexer().IndexField(ctx, obj, field, extract); err != nil {
			return err
		}
	}
	return nil
}

func (p *engaging) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	name := multicluster.ClusterName(req.Name)
	p.lock.Lock()
	defer p.lock.Unlock()
	if err := p.mgr.GetLocalManager().GetClient().Get(ctx, req.NamespacedName, &corev1.Secret{}); err != nil {
		if cancel := p.cancel[name]; cancel != nil {
			cancel()
			delete(p.clusters, name)
			delete(p.cancel, name)
		}
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if _, ok := p.clusters[name]; ok || p.configs[req.Name] == nil {
		return ctrl.Result{}, nil
	}
	cl, err := cluster.New(p.configs[req.Name])
	if err != nil {
		return ctrl.Result{}, err
	}
	for _, index := range p.indexes {
		if err := cl.GetFieldIndexer().IndexField(ctx, index.Object, index.Field, index.Extractor); err != nil {
			return ctrl.Result{}, err
		}
	}
	clusterCtx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	context.AfterFunc(ctx, cancel) // that of the manager's controller
	go func() { _ = cl.Start(clusterCtx) }()
	if !cl.GetCache().WaitForCacheSync(ctx) {
		cancel()
		return ctrl.Result{}, fmt.Errorf("cluster %s: caches have not synced", name)
	}
	p.clusters[name], p.cancel[name] = cl, cancel
	return ctrl.Result{}, p.mgr.Engage(clusterCtx, name, cl)
}

// adding keeps its clusters in clusters.Clusters.
type adding struct {
	clusters.Clusters[cluster.Cluster]
	configs map[string]*rest.Config
	mgr     mcmanager.Manager
	ctx     context.Context
}

func (p *adding) SetupWithManager(ctx context.Context, mgr mcmanager.Manager) error {
	p.mgr, p.ctx = mgr, ctx
	return ctrl.NewControllerManagedBy(mgr.GetLocalManager()).For(&corev1.Secret{}).Complete(p)
}

func (p *adding) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	name := multicluster.ClusterName(req.Name)
	if err := p.mgr.GetLocalManager().GetClient().Get(ctx, req.NamespacedName, &corev1.Secret{}); err != nil {
		p.Remove(name)
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if p.configs[req.Name] == nil {
		return ctrl.Result{}, nil
	}
	cl, err := cluster.New(p.configs[req.Name])
	if err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, p.AddOrReplace(p.ctx, name, cl, p.mgr)
}

func TestProvidersOfExistingRuntime(t *testing.T) {
	for name, newProvider := range map[string]func(map[string]*rest.Config) existingProvider{
		"calls mgr.Engage": func(configs map[string]*rest.Config) existingProvider { return &engaging{configs: configs} },
		"keeps its clusters in clusters.Clusters": func(configs map[string]*rest.Config) existingProvider {
			return &adding{Clusters: clusters.New[cluster.Cluster](), configs: configs}
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			local, eu, us := mctest.New(t), mctest.New(t), mctest.New(t)
			secret := func(name string) *corev1.Secret { return &corev1.Secret{ObjectMeta: configMap(name).ObjectMeta} }
			g.Expect(local.Create(secret("eu"))).To(Succeed())
			for _, member := range []*mctest.Cluster{eu, us} {
				g.Expect(member.Create(configMap("a"), configMap("b"))).To(Succeed())
			}
			provider := newProvider(map[string]*rest.Config{"eu": eu.Config(), "us": us.Config()})
			mgr, err := mc.NewManager(local.Config(), provider, mctest.ManagerOptions())
			g.Expect(err).NotTo(HaveOccurred())
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			g.Expect(provider.SetupWithManager(ctx, mgr)).To(Succeed())
			byName := func(o client.Object) []string { return []string{o.GetName()} }
			g.Expect(mgr.GetFieldIndexer().IndexField(ctx, &corev1.ConfigMap{}, "early", byName)).To(Succeed())
			rec := &seen{}
			g.Expect(mc.NewControllerManagedBy(mgr).For(&corev1.ConfigMap{}).Complete(rec)).To(Succeed())
			stop := mctest.StartManager(t, mgr)
			g.Eventually(rec.clusters).Should(ConsistOf(multicluster.ClusterName("eu")))
			g.Expect(local.Create(secret("us"))).To(Succeed())
			g.Eventually(rec.clusters).Should(ConsistOf(multicluster.ClusterName("eu"), multicluster.ClusterName("us")))
			for _, name := range []multicluster.ClusterName{"eu", "us"} {
				cl, err := mgr.GetCluster(ctx, name)
				g.Expect(err).NotTo(HaveOccurred())
				found := &corev1.ConfigMapList{}
				g.Expect(cl.GetClient().List(ctx, found, client.MatchingFields{"early": "a"})).To(Succeed())
				g.Expect(found.Items).To(HaveLen(1))
			}
			g.Expect(local.Delete(secret("eu"))).To(Succeed())
			g.Eventually(func() error {
				_, err := mgr.GetCluster(ctx, "eu")
				return err
			}).Should(MatchError(multicluster.ErrClusterNotFound))
			g.Eventually(func() int { return eu.OpenWatches("configmaps") }).Should(BeZero())
			g.Expect(us.OpenWatches("configmaps")).To(Equal(1))
			cancel()
			stop()
			g.Eventually(func() int { return us.OpenWatches("configmaps") }).Should(BeZero())
		})
	}
}
