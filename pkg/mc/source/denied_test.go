// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	mchandler "github.com/rollcall-dev/rollcall/pkg/mc/handler"
	mcreconcile "github.com/rollcall-dev/rollcall/pkg/mc/reconcile"
	mcsource "github.com/rollcall-dev/rollcall/pkg/mc/source"
)

// listingCluster has an informer whose list takes a time, and then fails or not.
type listingCluster struct {
	cluster.Cluster
	list   time.Duration
	denied error
}

func (c *listingCluster) GetCache() cache.Cache { return listingCache{cluster: c} }

type listingCache struct {
	cache.Cache
	cluster *listingCluster
}

func (c listingCache) GetInformer(context.Context, client.Object, ...cache.InformerGetOption) (cache.Informer, error) {
	return &listingInformer{cluster: c.cluster, synced: make(chan struct{})}, nil
}

type listingInformer struct {
	cache.Informer
	cluster *listingCluster
	synced  chan struct{}
}

// OnListError implements sources.ListErrorReporter.
func (i *listingInformer) OnListError(ctx context.Context, report func(error)) {
	if i.cluster.denied == nil {
		return
	}
	time.AfterFunc(i.cluster.list, func() {
		if ctx.Err() == nil {
			report(i.cluster.denied)
		}
	})
}

func (i *listingInformer) AddEventHandlerWithOptions(toolscache.ResourceEventHandler, toolscache.HandlerOptions) (toolscache.ResourceEventHandlerRegistration, error) {
	if i.cluster.denied == nil {
		time.AfterFunc(i.cluster.list, func() { close(i.synced) })
	}
	return i, nil
}

func (i *listingInformer) RemoveEventHandler(toolscache.ResourceEventHandlerRegistration) error {
	return nil
}

// The following methods implement toolscache.ResourceEventHandlerRegistration.

func (i *listingInformer) HasSyncedChecker() toolscache.DoneChecker { return i }
func (i *listingInformer) Name() string                             { return "listing" }
func (i *listingInformer) Done() <-chan struct{}                    { return i.synced }

func (i *listingInformer) HasSynced() bool {
	select {
	case <-i.synced:
		return true
	default:
		return false
	}
}

func TestDeniedListIsReportedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		d := diagnose(ctx, t, &listingCluster{list: 5 * time.Millisecond, denied: errForbidden})
		time.Sleep(5 * time.Millisecond)
		synctest.Wait()
		reason, after := d.first()
		g.Expect(reason).To(And(ContainSubstring("cannot list objects"), ContainSubstring("not yours")))
		g.Expect(after).To(Equal(5 * time.Millisecond))
	})
}

func TestWaitForSyncDoesNotPoll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		s, _, err := mcsource.Kind(&corev1.ConfigMap{}, mchandler.TypedEnqueueRequestForObject[*corev1.ConfigMap]()).
			SyncingForCluster("eu", &listingCluster{list: 5 * time.Millisecond})
		g.Expect(err).NotTo(HaveOccurred())
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		began := time.Now()
		g.Expect(s.Start(ctx, &queue[mcreconcile.Request]{})).To(Succeed())
		g.Expect(s.WaitForSync(ctx)).To(Succeed())
		g.Expect(time.Since(began)).To(Equal(5 * time.Millisecond))
	})
}
