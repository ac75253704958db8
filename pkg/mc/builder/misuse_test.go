// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package builder_test

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/source"

	mcbuilder "github.com/rollcall-dev/rollcall/pkg/mc/builder"
	mccontroller "github.com/rollcall-dev/rollcall/pkg/mc/controller"
	mchandler "github.com/rollcall-dev/rollcall/pkg/mc/handler"
	mcmanager "github.com/rollcall-dev/rollcall/pkg/mc/manager"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
	mcreconcile "github.com/rollcall-dev/rollcall/pkg/mc/reconcile"
)

// unknown is a type that is in no scheme.
type unknown struct{ corev1.ConfigMap }

// noHandler returns no handler.
func noHandler(multicluster.ClusterName, cluster.Cluster) mchandler.EventHandler {
	return nil
}

func TestMisuse(t *testing.T) {
	type job = mcreconcile.WithCluster[string]
	local := mctest.New(t)
	mgr, withProvider := newManager(t, local, nil), newManager(t, local, &provider{})
	rec, jobs := &recorder[mcreconcile.Request]{}, &recorder[job]{}
	build := func(b *mcbuilder.Builder) error { return b.Complete(rec) }
	on := mcbuilder.ControllerManagedBy
	for _, tc := range []struct {
		name  string
		build func() error
		want  string
	}{
		{
			name:  "no reconciler",
			build: func() error { return on(mgr).For(&corev1.ConfigMap{}).Complete(nil) },
			want:  "must provide a non-nil Reconciler",
		},
		{
			name:  "no manager",
			build: func() error { return build(on(nil).For(&corev1.ConfigMap{})) },
			want:  "must provide a non-nil Manager",
		},
		{
			name: "two reconcilers",
			build: func() error {
				return build(on(mgr).For(&corev1.ConfigMap{}).WithOptions(mccontroller.Options{Reconciler: rec}))
			},
			want: "the reconciler must not be set in WithOptions(): pass it to Build() or Complete()",
		},
		{
			name:  "two kinds to reconcile",
			build: func() error { return build(on(mgr).For(&corev1.ConfigMap{}).For(&corev1.Secret{})) },
			want:  "For(...) must be called only once: a controller reconciles one kind",
		},
		{
			name:  "nothing to watch",
			build: func() error { return build(on(mgr).Named("idle")) },
			want:  "the controller watches nothing: use For(), Watches() or WatchesRawSource()",
		},
		{
			name:  "Owns without For",
			build: func() error { return build(on(mgr).Named("test").Owns(&corev1.ConfigMap{})) },
			want:  "Owns() needs For(): it enqueues owners of that kind",
		},
		{
			name:  "no name and no kind",
			build: func() error { return build(watches[2].watch(on(mgr))) },
			want:  "the controller needs a name: use For() or Named()",
		},
		{
			name:  "no object to reconcile",
			build: func() error { return build(on(mgr).For(nil)) },
			want:  "For(...): the object must not be nil",
		},
		{
			name:  "a nil object of a type to reconcile",
			build: func() error { return build(on(mgr).For((*corev1.ConfigMap)(nil))) },
			want:  "For(...): the object must not be nil",
		},
		{
			name:  "no object to reconcile, and a second For",
			build: func() error { return build(on(mgr).For(nil).For(&corev1.ConfigMap{})) },
			want:  "For(...) must be called only once",
		},
		{
			name:  "no object to own",
			build: func() error { return build(on(mgr).For(&corev1.ConfigMap{}).Owns(nil)) },
			want:  "Owns(...): the object must not be nil",
		},
		{
			name: "no object to watch",
			build: func() error {
				return build(on(mgr).Named("test").Watches(nil, mchandler.EnqueueRequestForObject))
			},
			want: "Watches(...): the object must not be nil",
		},
		{
			name: "no metadata to watch",
			build: func() error {
				return build(on(mgr).Named("test").WatchesMetadata(nil, mchandler.EnqueueRequestForObject))
			},
			want: "Watches(...): the object must not be nil",
		},
		{
			name:  "no source",
			build: func() error { return build(on(mgr).For(&corev1.ConfigMap{}).WatchesRawSource(nil)) },
			want:  "the source of WatchesRawSource must not be nil",
		},
		{
			name: "a nil source of a type",
			build: func() error {
				return build(on(mgr).For(&corev1.ConfigMap{}).WatchesRawSource(source.TypedFunc[mcreconcile.Request](nil)))
			},
			want: "the source of WatchesRawSource must not be nil",
		},
		{
			name: "a nil provider",
			build: func() error {
				return build(on(mgr).For(&corev1.ConfigMap{}, mcbuilder.WithClustersFromProvider(t.Context(), (*provider)(nil))))
			},
			want: "the provider of WithClustersFromProvider must not be nil",
		},
		{
			name:  "no predicate",
			build: func() error { return build(on(mgr).For(&corev1.ConfigMap{}, mcbuilder.WithPredicates(nil))) },
			want:  "For(*v1.ConfigMap): the predicates must not be nil",
		},
		{
			name:  "no predicate of WithEventFilter",
			build: func() error { return build(on(mgr).For(&corev1.ConfigMap{}).WithEventFilter(nil)) },
			want:  "the predicate of WithEventFilter must not be nil",
		},
		{
			name: "no handler for the local cluster",
			build: func() error {
				return build(on(mgr).Named("test").Watches(&corev1.Secret{}, noHandler))
			},
			want: "cannot watch *v1.Secret in the local cluster: the function of Watches(*v1.Secret) returned no handler",
		},
		{
			name: "a kind to reconcile in no cluster",
			build: func() error {
				return build(on(withProvider).For(&corev1.ConfigMap{}, mcbuilder.WithEngageWithProviderClusters(false)))
			},
			want: "For(*v1.ConfigMap) watches no cluster: use WithEngageWithLocalCluster(true)",
		},
		{
			name: "a kind to reconcile in no cluster, without a provider",
			build: func() error {
				return build(on(mgr).For(&corev1.ConfigMap{}, mcbuilder.WithEngageWithLocalCluster(false)))
			},
			want: "For(*v1.ConfigMap) watches no cluster: use WithEngageWithLocalCluster(true)",
		},
		{
			name: "a kind to watch in no cluster",
			build: func() error {
				return build(on(withProvider).Named("test").Watches(&corev1.Secret{}, mchandler.EnqueueRequestForObject, mcbuilder.WithEngageWithProviderClusters(false)))
			},
			want: "Watches(*v1.Secret) watches no cluster: use WithEngageWithLocalCluster(true)",
		},
		{
			name:  "no handler",
			build: func() error { return build(on(mgr).Named("test").Watches(&corev1.ConfigMap{}, nil)) },
			want:  "the handler for *v1.ConfigMap must not be nil",
		},
		{
			name:  "a kind missing in the scheme",
			build: func() error { return build(on(mgr).For(&unknown{})) },
			want:  "no kind is registered for the type builder_test.unknown",
		},
		{
			name: "For with custom requests",
			build: func() error {
				return mcbuilder.TypedControllerManagedBy[job](mgr).For(&corev1.ConfigMap{}).Complete(jobs)
			},
			want: "For() enqueues reconcile.Request, but the controller takes reconcile.WithCluster[string]: use Watches()",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			NewWithT(t).Expect(tc.build()).To(MatchError(ContainSubstring(tc.want)))
		})
	}
}

func TestClusterWithoutHandler(t *testing.T) {
	g := NewWithT(t)
	w, rec := newFixture(t, []client.Object{secret("a")}), &recorder[mcreconcile.Request]{}
	ctrl, err := mcbuilder.ControllerManagedBy(w.mgr).Named("test").
		Watches(&corev1.Secret{}, func(name multicluster.ClusterName, cl cluster.Cluster) mchandler.EventHandler {
			if name == "us" {
				return nil
			}
			return mchandler.EnqueueRequestForObject(name, cl)
		}).Build(rec)
	g.Expect(err).NotTo(HaveOccurred())
	mctest.StartManager(t, w.mgr)
	g.Eventually(rec.seen).WithTimeout(mctest.Timeout).Should(ConsistOf("eu/default/a"))
	g.Eventually(ctrl.(mccontroller.StatusReporter).ClusterStatus).WithTimeout(mctest.Timeout).Should(ContainElement(And(
		HaveField("ClusterName", Equal(multicluster.ClusterName("us"))),
		HaveField("LastError", ContainSubstring("the function of Watches(*v1.Secret) returned no handler")),
	)))
	g.Expect(rec.seen()).To(ConsistOf("eu/default/a"))
}

func TestDuplicateName(t *testing.T) {
	g := NewWithT(t)
	validated := func(o *mcmanager.Options) { o.Controller.SkipNameValidation = nil }
	mgr := newManager(t, mctest.New(t), nil, validated)
	// Names are unique in the process, which may run the test again.
	name := fmt.Sprint("taken-", time.Now().UnixNano())
	build := func() error {
		return mcbuilder.ControllerManagedBy(mgr).Named(name).For(&corev1.ConfigMap{}).
			Complete(&recorder[mcreconcile.Request]{})
	}
	g.Expect(build()).To(Succeed())
	g.Expect(build()).To(MatchError(ContainSubstring("controller with name " + name + " already exists")))
}
