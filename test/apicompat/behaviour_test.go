// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package apicompat

import (
	"context"
	"errors"
	"io"
	"maps"
	"slices"
	"sync"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/rollcall-dev/rollcall/pkg/mc"
	mcbuilder "github.com/rollcall-dev/rollcall/pkg/mc/builder"
	"github.com/rollcall-dev/rollcall/pkg/mc/clusters"
	mchandler "github.com/rollcall-dev/rollcall/pkg/mc/handler"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
	mcreconcile "github.com/rollcall-dev/rollcall/pkg/mc/reconcile"
	mcsource "github.com/rollcall-dev/rollcall/pkg/mc/source"
)

// These programs rely on behaviour that signatures do not show.

// seen is a reconciler that keeps the clusters of requests.
type seen struct {
	mu    sync.Mutex
	names map[multicluster.ClusterName]bool
}

func (s *seen) Reconcile(_ context.Context, req mc.Request) (mc.Result, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.names == nil {
		s.names = map[multicluster.ClusterName]bool{}
	}
	s.names[req.ClusterName] = true
	return mc.Result{}, nil
}

func (s *seen) clusters() []multicluster.ClusterName {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.names))
}

func configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: mc.ObjectMeta{Namespace: "default", Name: name}}
}

// newFleet returns a manager and its provider, with a ConfigMap in the local
// cluster and in those named.
func newFleet(t *testing.T, names ...multicluster.ClusterName) (mc.Manager, *directory) {
	t.Helper()
	g := NewWithT(t)
	servers := mctest.NewFleet(t, len(names)+1)
	configs := map[multicluster.ClusterName]*rest.Config{}
	for i, server := range servers.Clusters() {
		g.Expect(server.Create(configMap("a"), configMap("b"))).To(Succeed())
		if i > 0 {
			configs[names[i-1]] = server.Config()
		}
	}
	provider := newDirectory(configs)
	mgr, err := mc.NewManager(servers.Cluster(0).Config(), provider, mctest.ManagerOptions())
	g.Expect(err).NotTo(HaveOccurred())
	return mgr, provider
}

func TestClustersOfWatches(t *testing.T) {
	g := NewWithT(t)
	mgr, provider := newFleet(t, "eu", "us")
	only := func(name multicluster.ClusterName) mcbuilder.EngageOptions {
		return mcbuilder.WithClusterFilter(func(n multicluster.ClusterName, _ cluster.Cluster) bool { return n == name })
	}
	local := mcbuilder.WithEngageWithLocalCluster(true)
	fromProvider := mcbuilder.WithClustersFromProvider(t.Context(), provider)
	type names = []multicluster.ClusterName
	cases := []struct {
		name    string
		options []mcbuilder.ForOption
		want    names
	}{
		{"by default the provider's", nil, names{"eu", "us"}},
		{"filter", []mcbuilder.ForOption{only("eu")}, names{"eu"}},
		{"the filter does not concern the local cluster", []mcbuilder.ForOption{only("eu"), local}, names{"", "eu"}},
		{"the last filter counts", []mcbuilder.ForOption{only("eu"), only("us")}, names{"us"}},
		{"a nil filter is none", []mcbuilder.ForOption{mcbuilder.WithClusterFilter(nil)}, names{"eu", "us"}},
		{"clusters of a provider, and the local one", []mcbuilder.ForOption{fromProvider, local}, names{"", "eu", "us"}},
		{"a filter after a provider", []mcbuilder.ForOption{fromProvider, only("us")}, names{"us"}},
		{"a provider after a filter", []mcbuilder.ForOption{only("us"), fromProvider}, names{"eu", "us"}},
	}
	reconcilers := make([]seen, len(cases))
	for i, tc := range cases {
		g.Expect(mc.NewControllerManagedBy(mgr).Named(tc.name).For(&corev1.ConfigMap{}, tc.options...).
			Complete(&reconcilers[i])).To(Succeed(), tc.name)
	}
	mctest.StartManager(t, mgr)
	for i, tc := range cases {
		g.Eventually(reconcilers[i].clusters).WithTimeout(mctest.Timeout).Should(Equal(tc.want), tc.name)
	}
	for i, tc := range cases {
		g.Expect(reconcilers[i].clusters()).To(Equal(tc.want), tc.name)
	}
}

func TestSourceIsChangedInPlace(t *testing.T) {
	g := NewWithT(t)
	cl, err := cluster.New(mctest.New(t).Config())
	g.Expect(err).NotTo(HaveOccurred())
	src := mcsource.TypedKind[client.Object, mcreconcile.Request](&corev1.ConfigMap{}, mchandler.EnqueueRequestForObject)
	src.WithClusterFilter(func(name multicluster.ClusterName, _ cluster.Cluster) bool { return name != "us" })
	errProjection := errors.New("no projection")
	src.WithProjection(func(cluster.Cluster, client.Object) (client.Object, error) { return nil, errProjection })

	_, watched, err := src.ForCluster("us", cl)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(watched).To(BeFalse())
	_, _, err = src.ForCluster("eu", cl)
	g.Expect(err).To(MatchError(errProjection))
}

func TestAllWorkersForTheOnlyCluster(t *testing.T) {
	g := NewWithT(t)
	mgr, _ := newFleet(t, "eu")
	var together sync.WaitGroup
	together.Add(2)
	done := make(chan struct{})
	meet := mcreconcile.Func(func(context.Context, mc.Request) (mc.Result, error) {
		together.Done()
		together.Wait() // until the other request is reconciled, too
		return mc.Result{}, nil
	})
	g.Expect(mc.NewControllerManagedBy(mgr).Named("meet").For(&corev1.ConfigMap{}).
		WithOptions(controller.TypedOptions[mc.Request]{MaxConcurrentReconciles: 2}).
		Complete(meet)).To(Succeed())
	mctest.StartManager(t, mgr)
	go func() {
		together.Wait()
		close(done)
	}()
	g.Eventually(done).WithTimeout(mctest.Timeout).Should(BeClosed())
}

// failing is a provider that cannot start.
type failing struct{ *directory }

var errStart = errors.New("cannot start")

func (failing) Start(context.Context, multicluster.Aware) error { return errStart }

func TestFailingProviderEndsTheManager(t *testing.T) {
	g := NewWithT(t)
	mgr, err := mc.NewManager(mctest.New(t).Config(), failing{newDirectory(nil)}, mctest.ManagerOptions())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(mgr.Start(t.Context())).To(MatchError(errStart))
}

func TestTextOfRequests(t *testing.T) {
	g := NewWithT(t)
	req := mc.Request{ClusterName: "eu"}
	req.Namespace, req.Name = "ns", "pod"
	g.Expect(req.String()).To(Equal("cluster://eu/ns/pod"))
	g.Expect(req.WithCluster("").String()).To(Equal("ns/pod"))
}

func TestClustersOfTwoReadsAreEqual(t *testing.T) {
	g := NewWithT(t)
	read := func(host string) cluster.Cluster {
		cl, err := cluster.New(&rest.Config{Host: host, WarningHandler: rest.NewWarningWriter(io.Discard, rest.WarningWriterOptions{})})
		g.Expect(err).NotTo(HaveOccurred())
		return cl
	}
	g.Expect(clusters.EqualClusters(read("https://127.0.0.1:1"), read("https://127.0.0.1:1"))).To(BeTrue())
	g.Expect(clusters.EqualClusters(read("https://127.0.0.1:1"), read("https://127.0.0.1:2"))).To(BeFalse())
}

func TestSameIndexOfTwoControllers(t *testing.T) {
	g := NewWithT(t)
	mgr, provider := newFleet(t, "eu")
	byName := func(obj client.Object) []string { return []string{obj.GetName()} }
	add := func(indexer client.FieldIndexer) error {
		return indexer.IndexField(t.Context(), &corev1.ConfigMap{}, "byName", byName)
	}
	g.Expect(add(mgr.GetFieldIndexer())).To(Succeed())
	g.Expect(add(mgr.GetFieldIndexer())).To(Succeed())
	g.Expect(add(mgr.GetLocalManager().GetFieldIndexer())).To(Succeed())
	mctest.StartManager(t, mgr)
	g.Eventually(provider.ClusterNames).WithTimeout(mctest.Timeout).Should(HaveLen(1))
	for _, name := range []multicluster.ClusterName{"", "eu"} {
		cl, err := mgr.GetCluster(t.Context(), name)
		g.Expect(err).NotTo(HaveOccurred())
		found := &corev1.ConfigMapList{}
		g.Eventually(func() error {
			return cl.GetClient().List(t.Context(), found, client.MatchingFields{"byName": "a"})
		}).WithTimeout(mctest.Timeout).Should(Succeed())
		g.Expect(found.Items).To(HaveLen(1), "in cluster %q", name)
	}
}
