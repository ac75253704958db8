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
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	mchandler "github.com/rollcall-dev/rollcall/pkg/mc/handler"
	"github.com/rollcall-dev/rollcall/pkg/mc/internal/sources"
	mcreconcile "github.com/rollcall-dev/rollcall/pkg/mc/reconcile"
	mcsource "github.com/rollcall-dev/rollcall/pkg/mc/source"
)

var (
	errForbidden = apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "", errors.New("not yours"))
	errNoKind    = &meta.NoKindMatchError{GroupKind: schema.GroupKind{Kind: "ConfigMap"}, SearchedVersions: []string{"v1"}}
)

// stuckCluster is a cluster that never syncs. list may be nil.
type stuckCluster struct {
	cluster.Cluster
	informer func() error                // result of GetInformer
	list     func(context.Context) error // result of a list request
	lists    []client.ObjectList         // the lists of these requests
	limits   []int64                     // their limits
	times    []time.Time                 // and times
}

func (c *stuckCluster) GetCache() cache.Cache      { return stuckCache{cluster: c} }
func (c *stuckCluster) GetScheme() *runtime.Scheme { return scheme.Scheme }

func (c *stuckCluster) GetAPIReader() client.Reader {
	if c.list == nil {
		return nil
	}
	return stuckReader{cluster: c}
}

type stuckReader struct {
	client.Reader
	cluster *stuckCluster
}

func (r stuckReader) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	c := r.cluster
	c.lists, c.times = append(c.lists, list), append(c.times, time.Now())
	c.limits = append(c.limits, (&client.ListOptions{}).ApplyOptions(options).Limit)
	return c.list(ctx)
}

type stuckCache struct {
	cache.Cache
	cluster *stuckCluster
}

func (c stuckCache) GetInformer(context.Context, client.Object, ...cache.InformerGetOption) (cache.Informer, error) {
	if err := c.cluster.informer(); err != nil {
		return nil, err
	}
	return stuckInformer{}, nil
}

type stuckInformer struct{ cache.Informer }

func (stuckInformer) AddEventHandlerWithOptions(toolscache.ResourceEventHandler, toolscache.HandlerOptions) (toolscache.ResourceEventHandlerRegistration, error) {
	return stuckRegistration{}, nil
}

func (stuckInformer) RemoveEventHandler(toolscache.ResourceEventHandlerRegistration) error {
	return nil
}

type stuckRegistration struct {
	toolscache.ResourceEventHandlerRegistration
}

func (stuckRegistration) HasSyncedChecker() toolscache.DoneChecker { return stuckChecker{} }

type stuckChecker struct{}

func (stuckChecker) Name() string          { return "stuck" }
func (stuckChecker) Done() <-chan struct{} { return nil }

// diagnosis records the reported errors.
type diagnosis struct {
	mu      sync.Mutex
	reasons []error
	after   []time.Duration
}

// diagnose starts a source in the cluster and calls Diagnose until the context
// ends.
func diagnose(ctx context.Context, t *testing.T, cl cluster.Cluster) *diagnosis {
	t.Helper()
	g := NewWithT(t)
	s, _, err := mcsource.Kind(&corev1.ConfigMap{}, mchandler.TypedEnqueueRequestForObject[*corev1.ConfigMap]()).
		SyncingForCluster("eu", cl)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(s.Start(ctx, &queue[mcreconcile.Request]{})).To(Succeed())
	d, began := &diagnosis{}, time.Now()
	go s.(sources.Diagnosed).Diagnose(ctx, func(err error) {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.reasons = append(d.reasons, err)
		d.after = append(d.after, time.Since(began))
	})
	return d
}

func (d *diagnosis) first() (reason string, after time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.reasons) == 0 {
		return "", 0
	}
	return d.reasons[0].Error(), d.after[0]
}

func TestDiagnose(t *testing.T) {
	hang := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	found := func() error { return nil }
	for _, tc := range []struct {
		name     string
		informer func(end <-chan struct{}) func() error
		list     func(context.Context) error
		want     string
		within   time.Duration
	}{
		{
			name:     "the kind is missing",
			informer: func(<-chan struct{}) func() error { return func() error { return errNoKind } },
			want:     `no matches for kind "ConfigMap" in version "v1"`,
			within:   0,
		},
		{
			name:     "the kind is forbidden",
			informer: func(<-chan struct{}) func() error { return found },
			list:     func(context.Context) error { return errForbidden },
			want:     `cannot list objects in all namespaces: configmaps is forbidden: not yours`,
			within:   600 * time.Millisecond,
		},
		{
			name:     "the API server does not answer",
			informer: func(<-chan struct{}) func() error { return found },
			list:     hang,
			want:     `the API server has not answered a list request within 10s`,
			within:   11 * time.Second,
		},
		{
			name: "discovery does not answer",
			informer: func(end <-chan struct{}) func() error {
				return func() error { <-end; return errors.New("canceled") }
			},
			list:   func(context.Context) error { panic("list before discovery") },
			want:   `the API server does not answer discovery requests`,
			within: 6 * time.Second,
		},
		{
			name:     "no error, the list is slow",
			informer: func(<-chan struct{}) func() error { return found },
			list:     func(context.Context) error { return nil },
		},
		{
			name:     "the cluster has no API reader",
			informer: func(<-chan struct{}) func() error { return found },
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := NewWithT(t)
				ctx, end := context.WithCancel(t.Context())
				defer end()
				d := diagnose(ctx, t, &stuckCluster{informer: tc.informer(ctx.Done()), list: tc.list})
				time.Sleep(tc.within)
				synctest.Wait()
				reason, after := d.first()
				g.Expect(reason).To(Equal(tc.want))
				g.Expect(after).To(BeNumerically("<=", tc.within))
				time.Sleep(time.Hour)
				reason, _ = d.first()
				g.Expect(reason).To(Equal(tc.want))
			})
		})
	}
}

func TestDiagnoseRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		ctx, end := context.WithCancel(t.Context())
		cl := &stuckCluster{
			informer: func() error { return nil },
			list:     func(context.Context) error { return errForbidden },
		}
		d := diagnose(ctx, t, cl)
		time.Sleep(time.Hour)
		end()
		synctest.Wait()
		asked := len(cl.times)
		g.Expect(asked).To(BeNumerically("~", 60, 12))
		g.Expect(d.reasons).To(HaveLen(asked))
		for i, list := range cl.lists {
			g.Expect(list).To(BeAssignableToTypeOf(&metav1.PartialObjectMetadataList{}))
			g.Expect(list.GetObjectKind().GroupVersionKind()).To(Equal(corev1.SchemeGroupVersion.WithKind("ConfigMapList")))
			g.Expect(cl.limits[i]).To(BeEquivalentTo(1))
		}
		time.Sleep(time.Hour)
		g.Expect(cl.times).To(HaveLen(asked))
	})
}

func TestDiagnoseEndsWithContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		ctx, end := context.WithCancel(t.Context())
		d := diagnose(ctx, t, &stuckCluster{
			informer: func() error { return nil },
			list:     func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
		})
		time.Sleep(5 * time.Second) // during a request
		end()
		synctest.Wait()
		g.Expect(d.reasons).To(BeEmpty())
	})
}
