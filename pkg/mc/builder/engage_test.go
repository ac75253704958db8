// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package builder_test

import (
	"context"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/source"

	mcbuilder "github.com/rollcall-dev/rollcall/pkg/mc/builder"
	mchandler "github.com/rollcall-dev/rollcall/pkg/mc/handler"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
	mcreconcile "github.com/rollcall-dev/rollcall/pkg/mc/reconcile"
)

// watch is a method of the builder that watches ConfigMaps.
type watch struct {
	name  string
	watch func(*mcbuilder.Builder, ...mcbuilder.EngageOptions) *mcbuilder.Builder
}

func options[option any](all []mcbuilder.EngageOptions) []option {
	out := make([]option, len(all))
	for i, o := range all {
		out[i] = any(o).(option)
	}
	return out
}

var watches = []watch{
	{"For", func(b *mcbuilder.Builder, opts ...mcbuilder.EngageOptions) *mcbuilder.Builder {
		return b.For(&corev1.ConfigMap{}, options[mcbuilder.ForOption](opts)...)
	}},
	{"Owns", func(b *mcbuilder.Builder, opts ...mcbuilder.EngageOptions) *mcbuilder.Builder {
		// Only the owned objects are watched.
		return b.For(&corev1.Secret{}, mcbuilder.WithEngageWithLocalCluster(false), mcbuilder.WithEngageWithProviderClusters(false)).
			Owns(&corev1.ConfigMap{}, options[mcbuilder.OwnsOption](opts)...)
	}},
	{"Watches", func(b *mcbuilder.Builder, opts ...mcbuilder.EngageOptions) *mcbuilder.Builder {
		return b.Watches(&corev1.ConfigMap{}, mchandler.EnqueueRequestForObject, options[mcbuilder.WatchesOption](opts)...)
	}},
	{"WatchesMetadata", func(b *mcbuilder.Builder, opts ...mcbuilder.EngageOptions) *mcbuilder.Builder {
		return b.WatchesMetadata(&corev1.ConfigMap{}, mchandler.EnqueueRequestForObject, options[mcbuilder.WatchesOption](opts)...)
	}},
}

// silence is a source without events.
func silence(context.Context, workqueue.TypedRateLimitingInterface[mcreconcile.Request]) error {
	return nil
}

func TestEngageOptions(t *testing.T) {
	named := func(names ...multicluster.ClusterName) mcbuilder.EngageOptions {
		return mcbuilder.WithClusterFilter(func(name multicluster.ClusterName, cl cluster.Cluster) bool {
			return cl != nil && slices.Contains(names, name)
		})
	}
	for _, tc := range []struct {
		name       string
		noProvider bool
		options    []mcbuilder.EngageOptions
		want       []string // of "local", "eu" and "us"
	}{
		{name: "default", want: []string{"eu", "us"}},
		{name: "default without a provider", noProvider: true, want: []string{"local"}},
		{
			name:    "also the local cluster",
			options: []mcbuilder.EngageOptions{mcbuilder.WithEngageWithLocalCluster(true)},
			want:    []string{"local", "eu", "us"},
		},
		{
			name:    "only the local cluster",
			options: []mcbuilder.EngageOptions{mcbuilder.WithEngageWithLocalCluster(true), mcbuilder.WithEngageWithProviderClusters(false)},
			want:    []string{"local"},
		},
		{
			name:    "none",
			options: []mcbuilder.EngageOptions{mcbuilder.WithEngageWithProviderClusters(false)},
		},
		{
			name: "none without a provider", noProvider: true,
			options: []mcbuilder.EngageOptions{mcbuilder.WithEngageWithLocalCluster(false)},
		},
		{
			name: "the last of contradicting options applies",
			options: []mcbuilder.EngageOptions{
				mcbuilder.WithEngageWithLocalCluster(true), mcbuilder.WithEngageWithProviderClusters(false),
				mcbuilder.WithEngageWithLocalCluster(false), mcbuilder.WithEngageWithProviderClusters(true),
			},
			want: []string{"eu", "us"},
		},
		{
			name:    "a filter",
			options: []mcbuilder.EngageOptions{named("us", "")},
			want:    []string{"us"},
		},
		{
			name:    "the last of several filters applies",
			options: []mcbuilder.EngageOptions{named("eu"), named("us")},
			want:    []string{"us"},
		},
		{
			name:    "a nil filter is none",
			options: []mcbuilder.EngageOptions{named("eu"), mcbuilder.WithClusterFilter(nil)},
			want:    []string{"eu", "us"},
		},
		{
			name:    "a filter does not exclude the local cluster",
			options: []mcbuilder.EngageOptions{mcbuilder.WithEngageWithLocalCluster(true), named("eu")},
			want:    []string{"local", "eu"},
		},
		{
			name:    "a filter does not include the local cluster",
			options: []mcbuilder.EngageOptions{named("", "us")},
			want:    []string{"us"},
		},
		{
			name: "without a provider a filter has no effect", noProvider: true,
			options: []mcbuilder.EngageOptions{named("eu")},
			want:    []string{"local"},
		},
		{
			name: "the clusters of a provider and the local one",
			options: []mcbuilder.EngageOptions{
				mcbuilder.WithEngageWithLocalCluster(true),
				mcbuilder.WithClustersFromProvider(context.Background(), lookup{}),
			},
			want: []string{"local"},
		},
	} {
		for _, w := range watches {
			t.Run(tc.name+", with "+w.name, func(t *testing.T) {
				t.Parallel()
				g := NewWithT(t)
				world := newFixture(t, []client.Object{configMap("a", owner("a", true))})
				mgr := world.mgr
				if tc.noProvider {
					mgr = newManager(t, world.local, nil)
				}
				rec := &recorder[mcreconcile.Request]{}
				b := w.watch(mcbuilder.ControllerManagedBy(mgr).Named("test"), tc.options...)
				if len(tc.want) == 0 {
					b.WatchesRawSource(source.TypedFunc[mcreconcile.Request](silence))
				}
				g.Expect(b.Complete(rec)).To(Succeed())
				all, clusters := witness(t, mgr), 3
				if tc.noProvider {
					clusters = 1
				}
				mctest.StartManager(t, mgr)
				requests := map[string]string{"local": "default/a", "eu": "eu/default/a", "us": "us/default/a"}
				want := []string{}
				for _, name := range tc.want {
					want = append(want, requests[name])
				}
				g.Eventually(all.seen).WithTimeout(mctest.Timeout).Should(HaveLen(clusters))
				g.Eventually(rec.seen).WithTimeout(mctest.Timeout).Should(ConsistOf(want))
				g.Consistently(rec.seen).WithTimeout(settle).Should(ConsistOf(want))
			})
		}
	}
}

func TestEngageOptionsPerWatch(t *testing.T) {
	g := NewWithT(t)
	w, rec := newFixture(t, []client.Object{configMap("of-owns", owner("owner", true)), secret("of-for")}), &recorder[mcreconcile.Request]{}
	onlyEU := mcbuilder.WithClusterFilter(func(name multicluster.ClusterName, _ cluster.Cluster) bool { return name == "eu" })
	g.Expect(mcbuilder.ControllerManagedBy(w.mgr).
		For(&corev1.Secret{}, onlyEU).
		Owns(&corev1.ConfigMap{}, mcbuilder.WithEngageWithLocalCluster(true), mcbuilder.WithEngageWithProviderClusters(false)).
		Complete(rec)).To(Succeed())
	mctest.StartManager(t, w.mgr)
	g.Eventually(rec.seen).WithTimeout(mctest.Timeout).Should(ConsistOf("eu/default/of-for", "default/owner"))
	g.Consistently(rec.seen).WithTimeout(settle).Should(HaveLen(2))
}

func TestSharedEngageOptions(t *testing.T) {
	g := NewWithT(t)
	only := func(want multicluster.ClusterName) mcbuilder.EngageOptions {
		return mcbuilder.WithClusterFilter(func(name multicluster.ClusterName, _ cluster.Cluster) bool { return name == want })
	}
	w, rec := newFixture(t, []client.Object{configMap("a"), secret("b")}), &recorder[mcreconcile.Request]{}
	shared := mcbuilder.WithClusterFilter(func(multicluster.ClusterName, cluster.Cluster) bool { return true })
	g.Expect(mcbuilder.ControllerManagedBy(w.mgr).Named("test").
		Watches(&corev1.ConfigMap{}, mchandler.EnqueueRequestForObject, shared, only("eu")).
		Watches(&corev1.Secret{}, mchandler.EnqueueRequestForObject, shared, only("us")).
		Complete(rec)).To(Succeed())
	mctest.StartManager(t, w.mgr)
	g.Eventually(rec.seen).WithTimeout(mctest.Timeout).Should(ConsistOf("eu/default/a", "us/default/b"))
	g.Consistently(rec.seen).WithTimeout(settle).Should(HaveLen(2))
}
