// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	mccontext "github.com/rollcall-dev/rollcall/pkg/mc/context"
	mchandler "github.com/rollcall-dev/rollcall/pkg/mc/handler"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
	mcreconcile "github.com/rollcall-dev/rollcall/pkg/mc/reconcile"
	mcsource "github.com/rollcall-dev/rollcall/pkg/mc/source"
)

// start starts the source of a cluster and waits until it has synced. It ends
// with the context.
func start[object client.Object, request mcreconcile.ClusterAware[request]](
	ctx context.Context, t *testing.T, src mcsource.TypedSyncingSource[object, request], name multicluster.ClusterName, cl cluster.Cluster, q *queue[request],
) {
	t.Helper()
	g := NewWithT(t)
	s, watched, err := src.SyncingForCluster(name, cl)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(watched).To(BeTrue())
	g.Expect(s.Start(ctx, q)).To(Succeed())
	syncCtx, cancel := context.WithTimeout(ctx, mctest.Timeout)
	defer cancel()
	g.Expect(s.WaitForSync(syncCtx)).To(Succeed())
}

func TestKind(t *testing.T) {
	g := NewWithT(t)
	server := mctest.New(t)
	create(t, server, "a", "b")
	cl, q := connect(t, server), &queue[mcreconcile.Request]{}
	start(t.Context(), t, mcsource.Kind(&corev1.ConfigMap{}, mchandler.TypedEnqueueRequestForObject[*corev1.ConfigMap]()), "eu", cl, q)
	g.Expect(q.added()).To(ConsistOf(request("eu", "a"), request("eu", "b")), "the initial events come before the sync")
	g.Expect(q.initial()).To(Equal(2), "with low priority")

	create(t, server, "c")
	g.Eventually(q.added).WithTimeout(mctest.Timeout).Should(HaveLen(3))
	changed := configMap("a")
	changed.Data = map[string]string{"k": "v"}
	g.Expect(server.Update(changed)).To(Succeed())
	g.Eventually(q.added).WithTimeout(mctest.Timeout).Should(HaveLen(4))
	g.Expect(server.Delete(configMap("b"))).To(Succeed())
	g.Eventually(q.added).WithTimeout(mctest.Timeout).Should(HaveLen(5))
	g.Expect(q.added()[2:]).To(Equal([]mcreconcile.Request{request("eu", "c"), request("eu", "a"), request("eu", "b")}))
	g.Expect(q.initial()).To(Equal(2))
}

func TestKindSyncPeriod(t *testing.T) {
	g := NewWithT(t)
	server := mctest.New(t)
	create(t, server, "a")
	period := time.Second // the minimum of client-go
	often := connect(t, server, func(o *cluster.Options) { o.Cache.SyncPeriod = &period })
	seldom := connect(t, server)
	src, q := mcsource.Kind(&corev1.ConfigMap{}, mchandler.TypedEnqueueRequestForObject[*corev1.ConfigMap]()), &queue[mcreconcile.Request]{}
	start(t.Context(), t, src, "seldom", seldom, q)
	start(t.Context(), t, src, "often", often, q)
	g.Eventually(func() int { return len(q.added()) }).WithTimeout(mctest.Timeout).Should(BeNumerically(">=", 4))
	g.Expect(q.added()[1:]).To(HaveEach(request("often", "a")))
}

func TestKindOfSeveralClusters(t *testing.T) {
	g := NewWithT(t)
	servers, q := mctest.NewFleet(t, 2), &queue[mcreconcile.Request]{}
	src := mcsource.TypedKind[client.Object, mcreconcile.Request](&corev1.ConfigMap{}, mchandler.EnqueueRequestForObject)
	for i, name := range []string{"eu", "us"} {
		create(t, servers.Cluster(i), "of-"+name)
		start(t.Context(), t, src, multicluster.ClusterName(name), connect(t, servers.Cluster(i)), q)
	}
	g.Expect(q.added()).To(ConsistOf(request("eu", "of-eu"), request("us", "of-us")))
}

func TestClusterInContextOfMapFunc(t *testing.T) {
	type job = mcreconcile.WithCluster[string]
	toJobs := func(ctx context.Context, obj client.Object) []job {
		from, ok := mccontext.ClusterFrom(ctx)
		return []job{{Request: fmt.Sprintf("%s of %q %v", obj.GetName(), from, ok), ClusterName: "us"}}
	}
	server := mctest.New(t)
	create(t, server, "a")
	cl := connect(t, server)
	for _, tc := range []struct {
		name    string
		cluster multicluster.ClusterName
		handler mchandler.TypedEventHandlerFunc[client.Object, job]
		want    job
	}{
		{
			name: "requests for the cluster of the event", cluster: "eu",
			handler: mchandler.TypedEnqueueRequestsFromMapFunc(toJobs),
			want:    job{Request: `a of "eu" true`, ClusterName: "eu"},
		},
		{
			name: "requests for another cluster", cluster: "eu",
			handler: func(multicluster.ClusterName, cluster.Cluster) handler.TypedEventHandler[client.Object, job] {
				return mchandler.TypedEnqueueRequestsFromMapFuncWithClusterPreservation(toJobs)
			},
			want: job{Request: `a of "eu" true`, ClusterName: "us"},
		},
		{
			name:    "the local cluster",
			handler: mchandler.TypedEnqueueRequestsFromMapFunc(toJobs),
			want:    job{Request: `a of "" true`},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			q := &queue[job]{}
			start(t.Context(), t, mcsource.TypedKind[client.Object](&corev1.ConfigMap{}, tc.handler), tc.cluster, cl, q)
			NewWithT(t).Expect(q.added()).To(Equal([]job{tc.want}))
		})
	}
}

func TestKindPredicates(t *testing.T) {
	g := NewWithT(t)
	server, q := mctest.New(t), &queue[mcreconcile.Request]{}
	create(t, server, "a1", "a2", "b1")
	begins := func(with byte) predicate.TypedPredicate[*corev1.ConfigMap] {
		return predicate.NewTypedPredicateFuncs(func(obj *corev1.ConfigMap) bool { return obj.Name[0] == with })
	}
	ends := predicate.NewTypedPredicateFuncs(func(obj *corev1.ConfigMap) bool { return obj.Name[1] == '1' })
	start(t.Context(), t, mcsource.Kind(&corev1.ConfigMap{}, mchandler.TypedEnqueueRequestForObject[*corev1.ConfigMap](), begins('a'), ends), "eu", connect(t, server), q)
	create(t, server, "c1", "a3", "x1", "a1x")
	g.Eventually(q.added).WithTimeout(mctest.Timeout).Should(ContainElement(request("eu", "a1x")))
	g.Expect(q.added()).To(Equal([]mcreconcile.Request{request("eu", "a1"), request("eu", "a1x")}))
}

func TestWithProjection(t *testing.T) {
	g := NewWithT(t)
	server, q := mctest.New(t), &queue[mcreconcile.Request]{}
	create(t, server, "a")
	cl := connect(t, server)
	var mu sync.Mutex
	var seen []string
	note := predicate.NewPredicateFuncs(func(obj client.Object) bool {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, fmt.Sprintf("%T", obj))
		return true
	})
	full := mcsource.TypedKind[client.Object, mcreconcile.Request](&corev1.ConfigMap{}, mchandler.EnqueueRequestForObject, note)
	metadata := mcsource.TypedKind[client.Object, mcreconcile.Request](&corev1.ConfigMap{}, mchandler.EnqueueRequestForObject, note)
	projected := metadata.WithProjection(func(got cluster.Cluster, obj client.Object) (client.Object, error) {
		g.Expect(got).To(BeIdenticalTo(cl))
		g.Expect(obj).To(BeAssignableToTypeOf(&corev1.ConfigMap{}))
		projected := &metav1.PartialObjectMetadata{}
		projected.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
		return projected, nil
	})
	start(t.Context(), t, metadata, "eu", cl, q)
	start(t.Context(), t, projected, "eu", cl, q)
	start(t.Context(), t, full, "eu", cl, q)
	g.Expect(q.added()).To(HaveLen(3))
	g.Expect(seen).To(Equal([]string{"*v1.PartialObjectMetadata", "*v1.PartialObjectMetadata", "*v1.ConfigMap"}),
		"the source itself is projected, and returned")
}

func TestWithClusterFilter(t *testing.T) {
	g := NewWithT(t)
	cl := connect(t, mctest.New(t))
	all := mcsource.Kind(&corev1.ConfigMap{}, mchandler.TypedEnqueueRequestForObject[*corev1.ConfigMap]())
	made := 0
	some := mcsource.Kind(&corev1.ConfigMap{}, func(name multicluster.ClusterName, cl cluster.Cluster) handler.TypedEventHandler[*corev1.ConfigMap, mcreconcile.Request] {
		made++
		return mchandler.TypedEnqueueRequestForObject[*corev1.ConfigMap]()(name, cl)
	})
	filtered := some.WithClusterFilter(func(name multicluster.ClusterName, got cluster.Cluster) bool {
		g.Expect(got).To(BeIdenticalTo(cl))
		return name == "eu"
	})
	for _, tc := range []struct {
		source  mcsource.TypedSyncingSource[*corev1.ConfigMap, mcreconcile.Request]
		cluster multicluster.ClusterName
		want    bool
	}{
		{filtered, "eu", true}, {filtered, "us", false}, {filtered, "", false}, {all, "us", true},
		{some, "eu", true}, {some, "us", false},
		{all.WithClusterFilter(nil), "us", true},
	} {
		s, watched, err := tc.source.ForCluster(tc.cluster, cl)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(watched).To(Equal(tc.want))
		g.Expect(s).NotTo(BeNil(), "programs may ignore whether it is watched")
	}
	g.Expect(made).To(Equal(2), "no handler is made for a cluster that is not watched")
}

func TestExcludedKind(t *testing.T) {
	g := NewWithT(t)
	server, q := mctest.New(t), &queue[mcreconcile.Request]{}
	create(t, server, "a")
	kind := func(h mchandler.EventHandlerFunc) mcsource.TypedSyncingSource[client.Object, mcreconcile.Request] {
		return mcsource.TypedKind[client.Object](&corev1.ConfigMap{}, mchandler.TypedEventHandlerFunc[client.Object, mcreconcile.Request](h)).
			WithClusterFilter(func(multicluster.ClusterName, cluster.Cluster) bool { return false })
	}
	s, watched, err := kind(mchandler.EnqueueRequestForObject).SyncingForCluster("eu", connect(t, server))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(watched).To(BeFalse())
	g.Expect(fmt.Sprint(s)).To(Equal(`kind source: *v1.ConfigMap in cluster "eu", excluded`))
	g.Expect(s.WaitForSync(t.Context())).To(MatchError(ContainSubstring("was not started")))
	g.Expect(s.Start(t.Context(), q)).To(Succeed())
	ctx, cancel := context.WithTimeout(t.Context(), mctest.Timeout)
	defer cancel()
	g.Expect(s.WaitForSync(ctx)).To(Succeed())
	g.Expect(q.added()).To(Equal([]mcreconcile.Request{request("eu", "a")}))

	s, _, err = kind(nil).SyncingForCluster("eu", connect(t, server))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(s.Start(t.Context(), q)).To(MatchError(ContainSubstring(`cannot watch *v1.ConfigMap in cluster "eu"`)))
}

func TestForClusterErrors(t *testing.T) {
	cl := connect(t, mctest.New(t))
	kind := func(h mchandler.EventHandlerFunc) mcsource.TypedSyncingSource[client.Object, mcreconcile.Request] {
		return mcsource.TypedKind[client.Object](&corev1.ConfigMap{}, mchandler.TypedEventHandlerFunc[client.Object, mcreconcile.Request](h))
	}
	good := func() mcsource.TypedSyncingSource[client.Object, mcreconcile.Request] {
		return kind(mchandler.EnqueueRequestForObject)
	}
	for _, tc := range []struct {
		name   string
		source mcsource.TypedSyncingSource[client.Object, mcreconcile.Request]
		want   string
	}{
		{
			name:   "a handler that panics",
			source: kind(func(multicluster.ClusterName, cluster.Cluster) mchandler.EventHandler { panic("no such owner") }),
			want:   `cannot watch *v1.ConfigMap in cluster "eu": no such owner`,
		},
		{
			name:   "an owner missing in the scheme",
			source: kind(mchandler.EnqueueRequestForOwner(&unknown{})),
			want:   `no kind is registered for the type source_test.unknown`,
		},
		{
			name:   "a nil handler function",
			source: kind(nil),
			want:   `cannot watch *v1.ConfigMap in cluster "eu"`,
		},
		{
			name: "a projection that fails",
			source: good().WithProjection(func(cluster.Cluster, client.Object) (client.Object, error) {
				return nil, errors.New("not of this form")
			}),
			want: `projection of *v1.ConfigMap failed for cluster "eu": not of this form`,
		},
		{
			name:   "a projection that panics",
			source: good().WithProjection(func(cluster.Cluster, client.Object) (client.Object, error) { panic("oh") }),
			want:   `cannot watch *v1.ConfigMap in cluster "eu": oh`,
		},
		{
			name:   "a filter that panics",
			source: good().WithClusterFilter(func(multicluster.ClusterName, cluster.Cluster) bool { panic("oh") }),
			want:   `cannot watch *v1.ConfigMap in cluster "eu": oh`,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			s, watched, err := tc.source.ForCluster("eu", cl)
			g.Expect(err).To(MatchError(ContainSubstring(tc.want)))
			g.Expect(watched).To(BeFalse())
			g.Expect(s).To(BeNil())
		})
	}
}

// unknown is a type that is in no scheme.
type unknown struct{ corev1.ConfigMap }

func TestKindString(t *testing.T) {
	g := NewWithT(t)
	src := mcsource.Kind(&corev1.ConfigMap{}, mchandler.TypedEnqueueRequestForObject[*corev1.ConfigMap]())
	g.Expect(fmt.Sprint(src)).To(Equal("multi-cluster kind source: *v1.ConfigMap"))
	cl := connect(t, mctest.New(t))
	for name, want := range map[multicluster.ClusterName]string{
		"eu": `kind source: *v1.ConfigMap in cluster "eu"`,
		"":   "kind source: *v1.ConfigMap in the local cluster",
	} {
		s, _, err := src.ForCluster(name, cl)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(fmt.Sprint(s)).To(Equal(want))
	}
}

// TestKindThatCannotSync tests that WaitForSync returns an error, and that another
// source can be started later.
func TestKindThatCannotSync(t *testing.T) {
	for _, tc := range []struct {
		name   string
		object client.Object
		fail   func(*mctest.Cluster)
		repair func(*testing.T, *mctest.Cluster)
	}{
		{
			name:   "forbidden",
			object: &corev1.ConfigMap{},
			fail:   func(c *mctest.Cluster) { c.Fault(mctest.Forbidden.On("configmaps")) },
			repair: func(_ *testing.T, c *mctest.Cluster) { c.Clear() },
		},
		{
			name:   "the API server hangs",
			object: &corev1.ConfigMap{},
			fail:   func(c *mctest.Cluster) { c.Fault(mctest.Hang.On("configmaps")) },
			repair: func(_ *testing.T, c *mctest.Cluster) { c.Clear() },
		},
		{
			name:   "the cluster does not have the kind",
			object: widget("", ""),
			fail:   func(*mctest.Cluster) {},
			repair: defineWidgets,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			server, q := mctest.New(t), &queue[mcreconcile.Request]{}
			create(t, server, "a")
			cl := connect(t, server)
			tc.fail(server)
			src := mcsource.TypedKind[client.Object, mcreconcile.Request](tc.object, mchandler.EnqueueRequestForObject)

			s, watched, err := src.SyncingForCluster("eu", cl)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(watched).To(BeTrue())
			ctx, end := context.WithCancel(t.Context())
			g.Expect(s.Start(ctx, q)).To(Succeed())
			syncCtx, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
			defer cancel()
			g.Expect(s.WaitForSync(syncCtx)).To(MatchError(ContainSubstring("timed out waiting for cache to be synced")))
			end()
			g.Expect(q.added()).To(BeEmpty())

			tc.repair(t, server)
			start(t.Context(), t, src, "eu", cl, q)
			g.Expect(slices.Compact(q.added())).To(Equal([]mcreconcile.Request{request("eu", "a")}), "the one that failed adds nothing")
			g.Expect(q.added()).To(HaveLen(1))
		})
	}
}
