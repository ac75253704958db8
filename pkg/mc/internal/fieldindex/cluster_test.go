// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package fieldindex_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/rollcall-dev/rollcall/pkg/mc/internal/fieldindex"
)

// fakeCluster is a cluster and its cache, whose only informer may not have synced.
type fakeCluster struct {
	cluster.Cluster
	cache.Cache
	synced   atomic.Bool
	conflict error // of IndexField
	indexed  atomic.Int32
	listed   atomic.Int32
}

func (c *fakeCluster) GetScheme() *runtime.Scheme      { return scheme.Scheme }
func (c *fakeCluster) GetCache() cache.Cache           { return fakeCache{c} }
func (c *fakeCluster) Start(ctx context.Context) error { return nil }

func (c *fakeCluster) GetFieldIndexer() client.FieldIndexer { return fakeCache{c} }

type fakeCache struct{ *fakeCluster }

func (c fakeCache) Start(context.Context) error { return nil }

func (c fakeCache) IndexField(context.Context, client.Object, string, client.IndexerFunc) error {
	c.indexed.Add(1)
	return c.conflict
}

func (c fakeCache) GetInformer(ctx context.Context, _ client.Object, opts ...cache.InformerGetOption) (cache.Informer, error) {
	options := cache.InformerGetOptions{}
	for _, opt := range opts {
		opt(&options)
	}
	if options.BlockUntilSynced != nil && !*options.BlockUntilSynced || c.synced.Load() {
		return fakeInformer{cluster: c.fakeCluster}, nil
	}
	<-ctx.Done()
	return nil, errors.New("timeout")
}

func (c fakeCache) List(context.Context, client.ObjectList, ...client.ListOption) error {
	c.listed.Add(1)
	return nil
}

func (c fakeCache) RemoveInformer(context.Context, client.Object) error { return nil }

type fakeInformer struct {
	cache.Informer
	cluster *fakeCluster
}

func (i fakeInformer) HasSynced() bool { return i.cluster.synced.Load() }

func byNode(obj client.Object) []string { return []string{obj.(*corev1.Pod).Spec.NodeName} }

func TestListWhileNotSynced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		fake, indexes := &fakeCluster{}, &fieldindex.Set{}
		cl := fieldindex.New(fake, `cluster "eu"`, indexes)
		g.Expect(indexes.Add(fieldindex.Index{Object: &corev1.Pod{}, Field: "node", Extract: byNode})).To(Succeed())
		list := func() (took time.Duration, err error) {
			began := time.Now()
			err = cl.GetCache().List(t.Context(), &corev1.PodList{}, client.MatchingFields{"node": "a"})
			return time.Since(began), err
		}
		g.Expect(cl.GetCache().List(t.Context(), &corev1.PodList{})).To(Succeed())
		g.Expect(fake.indexed.Load()).To(BeZero(), "a List that does not use the index")

		notThere := `index "node" of *v1.Pod is not there yet in cluster "eu": the cache has not synced`
		took, err := list()
		g.Expect(took).To(Equal(10 * time.Second))
		g.Expect(err).To(MatchError(ContainSubstring(notThere)))
		took, err = list()
		g.Expect(took).To(BeZero(), "only the first List waits")
		g.Expect(err).To(MatchError(ContainSubstring(notThere)))
		g.Expect(fake.listed.Load()).To(BeEquivalentTo(1))

		fake.synced.Store(true)
		for range 3 {
			took, err = list()
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(took).To(BeZero())
		}
		added := fake.indexed.Load()
		g.Expect(cl.GetCache().RemoveInformer(t.Context(), &corev1.Pod{})).To(Succeed())
		_, err = list()
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(fake.indexed.Load()).To(Equal(added+1), "an informer that was removed has no index")
	})
}

// The caller's context ends before the informer has synced. The next List waits.
func TestListContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		fake, indexes := &fakeCluster{}, &fieldindex.Set{}
		cl := fieldindex.New(fake, `cluster "eu"`, indexes)
		g.Expect(indexes.Add(fieldindex.Index{Object: &corev1.Pod{}, Field: "node", Extract: byNode})).To(Succeed())
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		results := make(chan error)
		for range 2 {
			go func() { results <- cl.GetCache().List(ctx, &corev1.PodList{}, client.MatchingFields{"node": "a"}) }()
		}
		for range 2 {
			g.Expect(<-results).To(MatchError(context.DeadlineExceeded))
		}
		time.AfterFunc(time.Second, func() { fake.synced.Store(true) })
		g.Expect(cl.GetCache().List(t.Context(), &corev1.PodList{}, client.MatchingFields{"node": "a"})).To(MatchError(ContainSubstring("not there yet")))
		g.Expect(cl.GetCache().List(t.Context(), &corev1.PodList{}, client.MatchingFields{"node": "a"})).To(Succeed())
	})
}

// Many goroutines that use an index add it once.
func TestConcurrentLists(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		fake, indexes := &fakeCluster{}, &fieldindex.Set{}
		fake.synced.Store(true)
		cl := fieldindex.New(fake, `cluster "eu"`, indexes)
		g.Expect(indexes.Add(fieldindex.Index{Object: &corev1.Pod{}, Field: "node", Extract: byNode})).To(Succeed())
		results := make(chan error)
		for range 20 {
			go func() {
				results <- cl.GetCache().List(t.Context(), &corev1.PodList{}, client.MatchingFields{"node": "a"})
			}()
		}
		for range 20 {
			g.Expect(<-results).To(Succeed())
		}
		g.Expect(fake.indexed.Load()).To(BeEquivalentTo(1))
	})
}
