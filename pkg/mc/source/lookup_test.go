// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/source"

	mchandler "github.com/rollcall-dev/rollcall/pkg/mc/handler"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
	mcreconcile "github.com/rollcall-dev/rollcall/pkg/mc/reconcile"
	mcsource "github.com/rollcall-dev/rollcall/pkg/mc/source"
)

// quietCluster answers where a kind is served when the test allows it.
type quietCluster struct {
	cluster.Cluster
	answer chan error

	mu    sync.Mutex // guards what follows
	asked []schema.GroupVersionKind
	found int  // calls of GetInformer
	waits bool // the last call of GetInformer waits for the sync
}

func newQuietCluster() *quietCluster { return &quietCluster{answer: make(chan error)} }

func (c *quietCluster) GetCache() cache.Cache          { return quietCache{cluster: c} }
func (c *quietCluster) GetScheme() *runtime.Scheme     { return scheme.Scheme }
func (c *quietCluster) GetRESTMapper() meta.RESTMapper { return quietMapper{cluster: c} }

// counts returns the number of requests to the API server and the cache.
func (c *quietCluster) counts() (asked, found int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.asked), c.found
}

type quietMapper struct {
	meta.RESTMapper
	cluster *quietCluster
}

func (m quietMapper) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	c := m.cluster
	c.mu.Lock()
	c.asked = append(c.asked, kind.WithVersion(versions[0]))
	c.mu.Unlock()
	return nil, <-c.answer
}

type quietCache struct {
	cache.Cache
	cluster *quietCluster
}

func (c quietCache) GetInformer(_ context.Context, _ client.Object, opts ...cache.InformerGetOption) (cache.Informer, error) {
	options := cache.InformerGetOptions{}
	for _, option := range opts {
		option(&options)
	}
	c.cluster.mu.Lock()
	defer c.cluster.mu.Unlock()
	c.cluster.found++
	c.cluster.waits = ptr.Deref(options.BlockUntilSynced, true)
	return stuckInformer{}, nil
}

// try starts a source of ConfigMaps in the cluster until the context ends.
func try(ctx context.Context, t *testing.T, src mcsource.TypedSyncingSource[client.Object, mcreconcile.Request], cl cluster.Cluster) source.TypedSyncingSource[mcreconcile.Request] {
	t.Helper()
	g := NewWithT(t)
	s, _, err := src.SyncingForCluster("eu", cl)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(s.Start(ctx, &queue[mcreconcile.Request]{})).To(Succeed())
	synctest.Wait()
	return s
}

func kindOf(obj client.Object) mcsource.TypedSyncingSource[client.Object, mcreconcile.Request] {
	return mcsource.TypedKind[client.Object, mcreconcile.Request](obj, mchandler.EnqueueRequestForObject)
}

func TestLookupResolvesKindFirst(t *testing.T) {
	metadata := &metav1.PartialObjectMetadata{}
	metadata.SetGroupVersionKind(widgetKind)
	for _, tc := range []struct {
		name   string
		object client.Object
		want   schema.GroupVersionKind
	}{
		{"Go type", &corev1.ConfigMap{}, corev1.SchemeGroupVersion.WithKind("ConfigMap")},
		{"unstructured", widget("", ""), widgetKind},
		{"metadata", metadata, widgetKind},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := NewWithT(t)
				cl := newQuietCluster()
				try(t.Context(), t, kindOf(tc.object), cl)
				g.Expect(cl.asked).To(Equal([]schema.GroupVersionKind{tc.want}))
				g.Expect(cl.found).To(BeZero(), "the cache would hold its lock")
				cl.answer <- nil
				synctest.Wait()
				g.Expect(cl.found).To(Equal(1))
				g.Expect(cl.waits).To(BeFalse(), "the lookup does not wait for the sync")
			})
		})
	}
}

func TestRetriesJoinLookup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		cl, other := newQuietCluster(), newQuietCluster()
		src := kindOf(&corev1.ConfigMap{})
		for range 10 {
			ctx, end := context.WithCancel(t.Context())
			try(ctx, t, src, cl)
			end()
			synctest.Wait()
		}
		asked, _ := cl.counts()
		g.Expect(asked).To(Equal(1))
		try(t.Context(), t, src, other)
		asked, _ = other.counts()
		g.Expect(asked).To(Equal(1), "another cluster has its own lookup")

		cl.answer <- nil
		synctest.Wait()
		asked, found := cl.counts()
		g.Expect([]int{asked, found}).To(Equal([]int{1, 0}), "no informer is started if no caller waits")

		try(t.Context(), t, src, cl)
		cl.answer <- nil
		other.answer <- nil
		synctest.Wait()
		asked, found = cl.counts()
		g.Expect([]int{asked, found}).To(Equal([]int{2, 1}))
	})
}

func TestRetryAfterAbandonedLookup(t *testing.T) {
	for _, tc := range []struct {
		name   string
		answer error
	}{
		{"found", nil},
		{"not found", errors.New("the connection is gone")},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := NewWithT(t)
				cl := newQuietCluster()
				src := kindOf(&corev1.ConfigMap{})
				ctx, end := context.WithCancel(t.Context())
				try(ctx, t, src, cl)
				end()
				synctest.Wait()
				try(t.Context(), t, src, cl)
				try(t.Context(), t, src, cl)
				cl.answer <- tc.answer
				synctest.Wait()
				asked, found := cl.counts()
				g.Expect([]int{asked, found}).To(Equal([]int{2, 0}), "one for both")
				cl.answer <- nil
				synctest.Wait()
				asked, found = cl.counts()
				g.Expect([]int{asked, found}).To(Equal([]int{2, 1}))
			})
		})
	}
}

func TestLookupContinuesForOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		cl := newQuietCluster()
		src := kindOf(&corev1.ConfigMap{})
		first, endFirst := context.WithCancel(t.Context())
		try(first, t, src, cl)
		third, endThird := context.WithCancel(t.Context())
		try(t.Context(), t, src, cl)
		try(third, t, src, cl)
		endFirst()
		endThird()
		synctest.Wait()
		cl.answer <- nil
		synctest.Wait()
		asked, found := cl.counts()
		g.Expect([]int{asked, found}).To(Equal([]int{1, 1}))
	})
}

func TestLookupOfProjection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		cl := newQuietCluster()
		src := kindOf(&corev1.ConfigMap{})
		try(t.Context(), t, src, cl)
		try(t.Context(), t, src.WithClusterFilter(func(multicluster.ClusterName, cluster.Cluster) bool { return true }), cl)
		try(t.Context(), t, src.WithProjection(func(cluster.Cluster, client.Object) (client.Object, error) {
			return widget("", ""), nil
		}), cl)
		g.Expect(cl.asked).To(Equal([]schema.GroupVersionKind{corev1.SchemeGroupVersion.WithKind("ConfigMap"), widgetKind}))
		cl.answer <- nil
		cl.answer <- nil
		synctest.Wait()
		g.Expect(cl.found).To(Equal(2))
	})
}

// sliceCluster is a cluster of a type that is not comparable.
type sliceCluster struct {
	*quietCluster
	_ []int
}

func TestLookupInUncomparableCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cl := newQuietCluster()
		try(t.Context(), t, kindOf(&corev1.ConfigMap{}), sliceCluster{quietCluster: cl})
		cl.answer <- nil
		synctest.Wait()
		_, found := cl.counts()
		NewWithT(t).Expect(found).To(Equal(1))
	})
}

func TestLookupIsRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		cl := newQuietCluster()
		src := kindOf(&corev1.ConfigMap{})
		try(t.Context(), t, src, cl)
		try(t.Context(), t, src, cl)
		cl.answer <- errors.New("not now")
		synctest.Wait()
		asked, found := cl.counts()
		g.Expect([]int{asked, found}).To(Equal([]int{1, 0}))
		time.Sleep(11 * time.Second) // controller-runtime's source retries every ten seconds
		synctest.Wait()
		asked, _ = cl.counts()
		g.Expect(asked).To(Equal(2))
		cl.answer <- nil
		synctest.Wait()
		_, found = cl.counts()
		g.Expect(found).To(Equal(1))
	})
}

func TestLookupsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cl := newQuietCluster()
		src := kindOf(&corev1.ConfigMap{})
		close(cl.answer)
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for range 100 {
					s, _, err := src.SyncingForCluster("eu", cl)
					if err != nil {
						t.Error(err)
						return
					}
					ctx, end := context.WithCancel(t.Context())
					if err := s.Start(ctx, &queue[mcreconcile.Request]{}); err != nil {
						t.Error(err)
					}
					end()
				}
			})
		}
		wg.Wait()
		synctest.Wait() // the test ends only if no goroutine is left
		g := NewWithT(t)
		_, before := cl.counts()
		try(t.Context(), t, src, cl)
		_, after := cl.counts()
		g.Expect(after-before).To(Equal(1), "later callers get the informer")
	})
}
