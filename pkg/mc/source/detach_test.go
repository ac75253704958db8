// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"

	. "github.com/onsi/gomega"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	mchandler "github.com/rollcall-dev/rollcall/pkg/mc/handler"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
	mcreconcile "github.com/rollcall-dev/rollcall/pkg/mc/reconcile"
	mcsource "github.com/rollcall-dev/rollcall/pkg/mc/source"
)

func TestHandlerIsRemovedAtEnd(t *testing.T) {
	g := NewWithT(t)
	server := mctest.New(t)
	create(t, server, "a")
	cl := connect(t, server)
	src := mcsource.Kind(&corev1.ConfigMap{}, mchandler.TypedEnqueueRequestForObject[*corev1.ConfigMap]())
	remaining, ended := &queue[mcreconcile.Request]{}, &queue[mcreconcile.Request]{}
	start(t.Context(), t, src, "remaining", cl, remaining)
	g.Eventually(func() int { return server.OpenWatches("configmaps") }).WithTimeout(mctest.Timeout).Should(Equal(1))
	create(t, server, "b")
	g.Eventually(remaining.added).WithTimeout(mctest.Timeout).Should(ContainElement(request("remaining", "b")), "all goroutines are running")

	idle := goleak.IgnoreCurrent()
	for range 10 {
		ctx, end := context.WithCancel(t.Context())
		start(ctx, t, src, "ended", cl, ended)
		end()
	}
	goleak.VerifyNone(t, idle)
	g.Expect(ended.added()).To(HaveLen(20), "two initial events each")

	create(t, server, "c")
	g.Eventually(remaining.added).WithTimeout(mctest.Timeout).Should(ContainElement(request("remaining", "c")), "the cache continues")
	g.Expect(ended.added()).To(HaveLen(20))
	g.Expect(server.OpenWatches("configmaps")).To(Equal(1), "and is shared")
}

// slowCache has an informer that adds a handler when the test allows it.
type slowCache struct {
	cache.Cache
	informer *countingInformer
}

func (c *slowCache) GetInformer(context.Context, client.Object, ...cache.InformerGetOption) (cache.Informer, error) {
	return c.informer, nil
}

func (c *slowCache) WaitForCacheSync(context.Context) bool { return true }

type countingInformer struct {
	cache.Informer
	take           chan struct{}
	mu             sync.Mutex
	added, removed int
}

type registration struct {
	toolscache.ResourceEventHandlerRegistration
}

func (registration) HasSynced() bool { return true }

func (i *countingInformer) AddEventHandlerWithOptions(toolscache.ResourceEventHandler, toolscache.HandlerOptions) (toolscache.ResourceEventHandlerRegistration, error) {
	<-i.take
	i.mu.Lock()
	defer i.mu.Unlock()
	i.added++
	return registration{}, nil
}

func (i *countingInformer) RemoveEventHandler(toolscache.ResourceEventHandlerRegistration) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.removed++
	return nil
}

func (i *countingInformer) counts() [2]int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return [2]int{i.added, i.removed}
}

type slowCluster struct {
	cluster.Cluster
	cache *slowCache
}

func (c slowCluster) GetCache() cache.Cache { return c.cache }

func TestHandlerAddedAfterEndIsRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		informers := &slowCache{informer: &countingInformer{take: make(chan struct{})}}
		s, _, err := mcsource.Kind(&corev1.ConfigMap{}, mchandler.TypedEnqueueRequestForObject[*corev1.ConfigMap]()).
			SyncingForCluster("eu", slowCluster{cache: informers})
		g.Expect(err).NotTo(HaveOccurred())
		ctx, end := context.WithCancel(t.Context())
		g.Expect(s.Start(ctx, &queue[mcreconcile.Request]{})).To(Succeed())
		synctest.Wait()
		end()
		synctest.Wait()
		close(informers.informer.take)
		synctest.Wait()
		g.Expect(informers.informer.counts()).To(Equal([2]int{1, 1}))
	})
}
