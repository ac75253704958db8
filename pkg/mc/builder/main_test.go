// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package builder_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	mcbuilder "github.com/rollcall-dev/rollcall/pkg/mc/builder"
	"github.com/rollcall-dev/rollcall/pkg/mc/clusters"
	mchandler "github.com/rollcall-dev/rollcall/pkg/mc/handler"
	mcmanager "github.com/rollcall-dev/rollcall/pkg/mc/manager"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
	mcreconcile "github.com/rollcall-dev/rollcall/pkg/mc/reconcile"
)

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	// controller-runtime watches metadata through apimachinery's watch.Filter,
	// which may wait forever to hand on the last event of a watch that is stopped.
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("k8s.io/apimachinery/pkg/watch.(*filteredWatch).loop"))
}

// settle is how long a state must not change.
const settle = 150 * time.Millisecond

// provider has a cluster for each of its servers.
type provider struct {
	clusters.Clusters[cluster.Cluster]
	servers map[multicluster.ClusterName]*mctest.Cluster
}

func (p *provider) Start(ctx context.Context, aware multicluster.Aware) error {
	for _, name := range slices.Sorted(maps.Keys(p.servers)) {
		cl, err := cluster.New(p.servers[name].Config())
		if err != nil {
			return multicluster.TerminalError(err)
		}
		if err := p.Add(ctx, name, cl, aware); err != nil {
			return multicluster.TerminalError(err)
		}
	}
	<-ctx.Done()
	return nil
}

// fixture has a local cluster and two clusters of a provider, eu and us.
type fixture struct {
	local, eu, us *mctest.Cluster
	provider      *provider
	mgr           mcmanager.Manager
}

// newFixture returns a fixture whose clusters have the objects. The manager is not
// started.
func newFixture(t *testing.T, objects []client.Object, change ...func(*mcmanager.Options)) *fixture {
	t.Helper()
	servers := mctest.NewFleet(t, 3, mctest.Options{Objects: objects})
	w := &fixture{local: servers.Cluster(0), eu: servers.Cluster(1), us: servers.Cluster(2)}
	w.provider = &provider{servers: map[multicluster.ClusterName]*mctest.Cluster{"eu": w.eu, "us": w.us}}
	w.mgr = newManager(t, w.local, w.provider, change...)
	return w
}

// newManager returns a manager for the local cluster and those of the provider.
func newManager(t *testing.T, local *mctest.Cluster, p multicluster.Provider, change ...func(*mcmanager.Options)) mcmanager.Manager {
	t.Helper()
	options := mctest.ManagerOptions()
	for _, c := range change {
		c(&options)
	}
	mgr, err := mcmanager.New(local.Config(), p, options)
	if err != nil {
		t.Fatal(err)
	}
	return mgr
}

// recorder records requests.
type recorder[request mcreconcile.ClusterAware[request]] struct {
	mu  sync.Mutex
	all []string
}

func (r *recorder[request]) Reconcile(_ context.Context, req request) (reconcile.Result, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, strings.TrimPrefix(req.String(), "cluster://"))
	return reconcile.Result{}, nil
}

// seen returns the reconciled requests, each once.
func (r *recorder[request]) seen() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := slices.Clone(r.all)
	slices.Sort(all)
	return slices.Compact(all)
}

func object(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: "default", Name: name}
}

func configMap(name string, owners ...metav1.OwnerReference) *corev1.ConfigMap {
	cm := &corev1.ConfigMap{ObjectMeta: object(name)}
	cm.OwnerReferences = owners
	return cm
}

func secret(name string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: object(name)}
}

// owner returns a reference to a Secret.
func owner(name string, controller bool) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: "v1", Kind: "Secret", Name: name, UID: "uid", Controller: &controller}
}

// witness adds a controller for the ConfigMaps of all clusters. When it has seen
// an object, another controller would have seen it too.
func witness(t *testing.T, mgr mcmanager.Manager) *recorder[mcreconcile.Request] {
	t.Helper()
	rec := &recorder[mcreconcile.Request]{}
	if err := mcbuilder.ControllerManagedBy(mgr).Named("witness").
		Watches(&corev1.ConfigMap{}, mchandler.EnqueueRequestForObject,
			mcbuilder.WithEngageWithLocalCluster(true), mcbuilder.WithEngageWithProviderClusters(true)).
		Complete(rec); err != nil {
		t.Fatal(err)
	}
	return rec
}
