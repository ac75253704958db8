// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package builder_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	mcbuilder "github.com/rollcall-dev/rollcall/pkg/mc/builder"
	mchandler "github.com/rollcall-dev/rollcall/pkg/mc/handler"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
	mcreconcile "github.com/rollcall-dev/rollcall/pkg/mc/reconcile"
	mcsource "github.com/rollcall-dev/rollcall/pkg/mc/source"
)

func TestForOwnsWatches(t *testing.T) {
	g := NewWithT(t)
	w, rec := newFixture(t, []client.Object{secret("a")}), &recorder[mcreconcile.Request]{}
	g.Expect(mcbuilder.ControllerManagedBy(w.mgr).
		For(&corev1.Secret{}).
		Owns(&corev1.ConfigMap{}).
		Watches(&corev1.ServiceAccount{}, mchandler.EnqueueRequestForObject).
		Complete(rec)).To(Succeed())
	mctest.StartManager(t, w.mgr)
	g.Eventually(rec.seen).WithTimeout(mctest.Timeout).Should(ConsistOf("eu/default/a", "us/default/a"))

	g.Expect(w.eu.Create(configMap("owned", owner("owner", true)))).To(Succeed())
	g.Expect(w.us.Create(&corev1.ServiceAccount{ObjectMeta: object("watched")})).To(Succeed())
	g.Eventually(rec.seen).WithTimeout(mctest.Timeout).Should(ConsistOf(
		"eu/default/a", "us/default/a", "eu/default/owner", "us/default/watched"))
}

func TestLiftAndMultiClusterWatch(t *testing.T) {
	g := NewWithT(t)
	w, rec := newFixture(t, []client.Object{configMap("a"), secret("b")}), &recorder[mcreconcile.Request]{}
	c, err := mcbuilder.ControllerManagedBy(w.mgr).Named("test").
		Watches(&corev1.ConfigMap{}, mchandler.Lift(&handler.EnqueueRequestForObject{})).
		Build(rec)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(c.MultiClusterWatch(mcsource.Kind(&corev1.Secret{}, mchandler.TypedEnqueueRequestForObject[*corev1.Secret]()))).To(Succeed())
	mctest.StartManager(t, w.mgr)
	g.Eventually(rec.seen).WithTimeout(mctest.Timeout).Should(ConsistOf("eu/default/a", "us/default/a", "eu/default/b", "us/default/b"))
}

func TestMatchEveryOwner(t *testing.T) {
	for _, tc := range []struct {
		name string
		opts []mcbuilder.OwnsOption
		want []string
	}{
		{"controller reference", nil, []string{"eu/default/boss", "us/default/boss"}},
		{
			"every owner", []mcbuilder.OwnsOption{mcbuilder.MatchEveryOwner},
			[]string{"eu/default/boss", "us/default/boss", "eu/default/helper", "us/default/helper"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			w := newFixture(t, []client.Object{configMap("owned", owner("helper", false), owner("boss", true))})
			rec := &recorder[mcreconcile.Request]{}
			g.Expect(mcbuilder.ControllerManagedBy(w.mgr).For(&corev1.Secret{}).Owns(&corev1.ConfigMap{}, tc.opts...).Complete(rec)).To(Succeed())
			mctest.StartManager(t, w.mgr)
			g.Eventually(rec.seen).WithTimeout(mctest.Timeout).Should(ConsistOf(tc.want))
			g.Consistently(rec.seen).WithTimeout(settle).Should(ConsistOf(tc.want))
		})
	}
}

// called passes objects whose name ends with one of the letters.
func called(last ...byte) predicate.Predicate {
	return predicate.NewPredicateFuncs(func(obj client.Object) bool {
		for _, l := range last {
			if obj.GetName()[len(obj.GetName())-1] == l {
				return true
			}
		}
		return false
	})
}

func TestPredicates(t *testing.T) {
	g := NewWithT(t)
	w, rec := newFixture(t, nil), &recorder[mcreconcile.Request]{}
	for _, letter := range []string{"a", "b", "c", "d"} {
		g.Expect(w.eu.Create(secret("for-"+letter), configMap("owned-by-"+letter, owner("owner-"+letter, true)),
			&corev1.ServiceAccount{ObjectMeta: object("watched-" + letter)})).To(Succeed())
	}
	g.Expect(mcbuilder.ControllerManagedBy(w.mgr).
		WithEventFilter(called('a', 'b', 'c')).
		WithEventFilter(called('b', 'c', 'd')).
		For(&corev1.Secret{}).
		Owns(&corev1.ConfigMap{}, mcbuilder.WithPredicates(called('a', 'b'))).
		Watches(&corev1.ServiceAccount{}, mchandler.EnqueueRequestForObject, mcbuilder.WithPredicates(called('b', 'c'), called('c', 'd'))).
		Complete(rec)).To(Succeed())
	mctest.StartManager(t, w.mgr)
	want := []string{"eu/default/for-b", "eu/default/for-c", "eu/default/owner-b", "eu/default/watched-c"}
	g.Eventually(rec.seen).WithTimeout(mctest.Timeout).Should(ConsistOf(want))
	g.Consistently(rec.seen).WithTimeout(settle).Should(ConsistOf(want))
}

func TestPredicatesOfFor(t *testing.T) {
	g := NewWithT(t)
	w, rec := newFixture(t, []client.Object{secret("a"), secret("b")}), &recorder[mcreconcile.Request]{}
	g.Expect(mcbuilder.ControllerManagedBy(w.mgr).For(&corev1.Secret{}, mcbuilder.WithPredicates(called('b'))).Complete(rec)).To(Succeed())
	mctest.StartManager(t, w.mgr)
	g.Eventually(rec.seen).WithTimeout(mctest.Timeout).Should(ConsistOf("eu/default/b", "us/default/b"))
	g.Consistently(rec.seen).WithTimeout(settle).Should(HaveLen(2))
}

func TestMetadataOnly(t *testing.T) {
	const partial, whole = "*v1.PartialObjectMetadata", "*v1.ConfigMap"
	enqueue := mchandler.TypedEventHandlerFunc[client.Object, mcreconcile.Request](mchandler.EnqueueRequestForObject)
	for _, tc := range []struct {
		name  string
		watch func(*mcbuilder.Builder) *mcbuilder.Builder
		want  string
	}{
		{"For", func(b *mcbuilder.Builder) *mcbuilder.Builder { return b.For(&corev1.ConfigMap{}) }, whole},
		{"For with OnlyMetadata", func(b *mcbuilder.Builder) *mcbuilder.Builder {
			return b.For(&corev1.ConfigMap{}, mcbuilder.OnlyMetadata)
		}, partial},
		{"Owns with OnlyMetadata", func(b *mcbuilder.Builder) *mcbuilder.Builder {
			return b.For(&corev1.Secret{}).Owns(&corev1.ConfigMap{}, mcbuilder.OnlyMetadata)
		}, partial},
		{"Watches", func(b *mcbuilder.Builder) *mcbuilder.Builder { return b.Watches(&corev1.ConfigMap{}, enqueue) }, whole},
		{"Watches with OnlyMetadata", func(b *mcbuilder.Builder) *mcbuilder.Builder {
			return b.Watches(&corev1.ConfigMap{}, enqueue, mcbuilder.OnlyMetadata)
		}, partial},
		{"WatchesMetadata", func(b *mcbuilder.Builder) *mcbuilder.Builder {
			return b.WatchesMetadata(&corev1.ConfigMap{}, enqueue)
		}, partial},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			w, rec := newFixture(t, []client.Object{configMap("a", owner("a", true))}), &recorder[mcreconcile.Request]{}
			var types sync.Map
			note := predicate.NewPredicateFuncs(func(obj client.Object) bool {
				types.Store(fmt.Sprintf("%T", obj), true)
				return true
			})
			g.Expect(tc.watch(mcbuilder.ControllerManagedBy(w.mgr).Named("test").WithEventFilter(note)).Complete(rec)).To(Succeed())
			mctest.StartManager(t, w.mgr)
			g.Eventually(rec.seen).WithTimeout(mctest.Timeout).Should(ConsistOf("eu/default/a", "us/default/a"))
			var seen []any
			types.Range(func(name, _ any) bool { seen = append(seen, name); return true })
			g.Expect(seen).To(ConsistOf(tc.want))
		})
	}
}

func TestWatchesRawSource(t *testing.T) {
	g := NewWithT(t)
	w, rec := newFixture(t, nil), &recorder[mcreconcile.Request]{}
	starts := 0
	raw := source.TypedFunc[mcreconcile.Request](func(_ context.Context, q workqueue.TypedRateLimitingInterface[mcreconcile.Request]) error {
		starts++
		q.Add(mcreconcile.Request{ClusterName: "anywhere"})
		return nil
	})
	g.Expect(mcbuilder.ControllerManagedBy(w.mgr).Named("test").
		WithEventFilter(predicate.NewPredicateFuncs(func(client.Object) bool { return false })).
		WatchesRawSource(raw).
		Watches(&corev1.ConfigMap{}, mchandler.EnqueueRequestForObject).
		Complete(rec)).To(Succeed())
	mctest.StartManager(t, w.mgr)
	g.Eventually(rec.seen).WithTimeout(mctest.Timeout).Should(ConsistOf("anywhere//"))
	g.Eventually(func() int { return w.us.OpenWatches("configmaps") }).WithTimeout(mctest.Timeout).Should(Equal(1))
	g.Expect(starts).To(Equal(1))
}

func TestCustomRequests(t *testing.T) {
	type job = mcreconcile.WithCluster[string]
	g := NewWithT(t)
	w, rec := newFixture(t, []client.Object{configMap("a")}), &recorder[job]{}
	g.Expect(mcbuilder.TypedControllerManagedBy[job](w.mgr).Named("test").
		Watches(&corev1.ConfigMap{}, mchandler.TypedEnqueueRequestsFromMapFunc(func(_ context.Context, obj client.Object) []job {
			return []job{{Request: "scan " + obj.GetName()}}
		})).
		Watches(&corev1.ConfigMap{}, func(multicluster.ClusterName, cluster.Cluster) handler.TypedEventHandler[client.Object, job] {
			return mchandler.TypedEnqueueRequestsFromMapFuncWithClusterPreservation(func(context.Context, client.Object) []job {
				return []job{{Request: "sum up"}}
			})
		}).
		Complete(rec)).To(Succeed())
	mctest.StartManager(t, w.mgr)
	g.Eventually(rec.seen).WithTimeout(mctest.Timeout).Should(ConsistOf("eu/scan a", "us/scan a", "sum up"))
}
