// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package namespace

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

var errStopped = errors.New("the cluster has been disengaged")

// NamespacedCache is the cache of a namespace. It shares the informers of the underlying
// cluster. Reads and events are confined as those of NamespacedClient.
type NamespacedCache struct {
	cache.Cache // confined, too
}

// ScopedInformer is an informer of a namespace: handlers get events of its objects, or
// all events for cluster-scoped objects. They are removed when the cluster is
// disengaged. AddIndexers is an error, as the informer is shared: use IndexField.
type ScopedInformer struct {
	cache.Informer // confined, too
}

// confinedCache confines a cache.Cache. It never starts or stops an informer of others.
type confinedCache struct {
	reader
	shared  cache.Cache
	indexes *indexes

	mu        sync.Mutex // guards what follows; not held while code of others is called
	closed    bool
	handlers  map[toolscache.ResourceEventHandlerRegistration]*scopedInformer
	informers map[cache.Informer]struct{} // that were returned
}

func newCache(s *scope, shared cache.Cache, x *indexes) *confinedCache {
	return &confinedCache{
		reader: reader{s, shared}, shared: shared, indexes: x,
		handlers:  map[toolscache.ResourceEventHandlerRegistration]*scopedInformer{},
		informers: map[cache.Informer]struct{}{},
	}
}

func (c *confinedCache) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if err := c.indexes.usable(list, c.scope, opts); err != nil {
		return err
	}
	return c.reader.List(ctx, list, opts...)
}

func (c *confinedCache) GetInformer(ctx context.Context, obj client.Object, opts ...cache.InformerGetOption) (cache.Informer, error) {
	gvk, namespaced, err := c.scope.kindOf(obj)
	if err != nil {
		return nil, err
	}
	shared, err := c.shared.GetInformer(ctx, obj, opts...)
	if err != nil {
		return nil, err
	}
	return c.informer(shared, gvk, namespaced), nil
}

func (c *confinedCache) GetInformerForKind(ctx context.Context, gvk schema.GroupVersionKind, opts ...cache.InformerGetOption) (cache.Informer, error) {
	namespaced, err := c.scope.isNamespaced(gvk)
	if err != nil {
		return nil, err
	}
	shared, err := c.shared.GetInformerForKind(ctx, gvk, opts...)
	if err != nil {
		return nil, err
	}
	return c.informer(shared, gvk, namespaced), nil
}

func (c *confinedCache) informer(shared cache.Informer, gvk schema.GroupVersionKind, namespaced bool) cache.Informer {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.informers[shared] = struct{}{}
	return &ScopedInformer{&scopedInformer{Informer: shared, cache: c, kind: gvk, namespaced: namespaced}}
}

// RemoveInformer removes the handlers that were added through this cache. The informer
// remains, as others use it.
func (c *confinedCache) RemoveInformer(_ context.Context, obj client.Object) error {
	gvk, err := apiutil.GVKForObject(obj, c.scope.scheme)
	if err != nil {
		return err
	}
	return c.removeHandlers(func(i *scopedInformer) bool { return i.kind == gvk })
}

// IndexField adds an index to the shared informer.
func (c *confinedCache) IndexField(ctx context.Context, obj client.Object, field string, extractValue client.IndexerFunc) error {
	return c.indexes.add(ctx, c.scope, c.shared, obj, field, extractValue)
}

// Start waits until the context ends. The shared cache is run by other code.
func (c *confinedCache) Start(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

// WaitForCacheSync waits for the informers that this cache has returned. Those that
// others use, and that may be forbidden, do not matter.
func (c *confinedCache) WaitForCacheSync(ctx context.Context) bool {
	c.mu.Lock()
	var syncing []<-chan struct{}
	for informer := range c.informers {
		syncing = append(syncing, informer.HasSyncedChecker().Done())
	}
	c.mu.Unlock()
	for _, synced := range syncing {
		select {
		case <-synced:
		case <-ctx.Done():
			return false
		}
	}
	return ctx.Err() == nil
}

// close removes all handlers, now and later.
func (c *confinedCache) close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	_ = c.removeHandlers(func(*scopedInformer) bool { return true })
}

func (c *confinedCache) removeHandlers(selected func(*scopedInformer) bool) error {
	removed := map[toolscache.ResourceEventHandlerRegistration]*scopedInformer{}
	c.mu.Lock()
	for handle, informer := range c.handlers {
		if selected(informer) {
			removed[handle] = informer
			delete(c.handlers, handle)
		}
	}
	c.mu.Unlock()
	var errs []error
	for handle, informer := range removed {
		errs = append(errs, informer.Informer.RemoveEventHandler(handle))
	}
	return errors.Join(errs...)
}

// scopedInformer confines a cache.Informer.
type scopedInformer struct {
	cache.Informer // shared
	cache          *confinedCache
	kind           schema.GroupVersionKind
	namespaced     bool
}

func (i *scopedInformer) AddEventHandler(handler toolscache.ResourceEventHandler) (toolscache.ResourceEventHandlerRegistration, error) {
	return i.keep(i.Informer.AddEventHandler(i.confine(handler)))
}

func (i *scopedInformer) AddEventHandlerWithResyncPeriod(handler toolscache.ResourceEventHandler, resyncPeriod time.Duration) (toolscache.ResourceEventHandlerRegistration, error) {
	return i.keep(i.Informer.AddEventHandlerWithResyncPeriod(i.confine(handler), resyncPeriod))
}

func (i *scopedInformer) AddEventHandlerWithOptions(handler toolscache.ResourceEventHandler, options toolscache.HandlerOptions) (toolscache.ResourceEventHandlerRegistration, error) {
	return i.keep(i.Informer.AddEventHandlerWithOptions(i.confine(handler), options))
}

func (i *scopedInformer) RemoveEventHandler(handle toolscache.ResourceEventHandlerRegistration) error {
	i.cache.mu.Lock()
	_, own := i.cache.handlers[handle]
	delete(i.cache.handlers, handle)
	i.cache.mu.Unlock()
	if !own {
		return nil // removed already, or of another cluster
	}
	return i.Informer.RemoveEventHandler(handle)
}

func (i *scopedInformer) AddIndexers(toolscache.Indexers) error {
	return fmt.Errorf("namespace %q: the informer is shared with other namespaces: use IndexField", i.cache.scope.namespace)
}

func (i *scopedInformer) IsStopped() bool {
	i.cache.mu.Lock()
	closed := i.cache.closed
	i.cache.mu.Unlock()
	return closed || i.Informer.IsStopped()
}

// OnListError reports why the informer cannot list its objects, if it knows that: see
// the sources of controllers.
func (i *scopedInformer) OnListError(ctx context.Context, report func(error)) {
	if reporter, ok := i.Informer.(interface {
		OnListError(ctx context.Context, report func(error))
	}); ok {
		reporter.OnListError(ctx, report)
	}
}

// OnListError forwards that of the informer that it wraps.
func (i *ScopedInformer) OnListError(ctx context.Context, report func(error)) {
	if informer, ok := i.Informer.(*scopedInformer); ok {
		informer.OnListError(ctx, report)
	}
}

// keep remembers a handler, to be removed when the cluster is disengaged.
func (i *scopedInformer) keep(handle toolscache.ResourceEventHandlerRegistration, err error) (toolscache.ResourceEventHandlerRegistration, error) {
	if err != nil {
		return nil, err
	}
	i.cache.mu.Lock()
	closed := i.cache.closed
	if !closed {
		i.cache.handlers[handle] = i
	}
	i.cache.mu.Unlock()
	if closed {
		return nil, errors.Join(errStopped, i.Informer.RemoveEventHandler(handle))
	}
	return handle, nil
}

// confine returns a handler that passes on events of objects of the namespace.
func (i *scopedInformer) confine(handler toolscache.ResourceEventHandler) toolscache.ResourceEventHandler {
	if !i.namespaced {
		return handler
	}
	namespace := i.cache.scope.namespace
	return toolscache.FilteringResourceEventHandler{Handler: handler, FilterFunc: func(obj any) bool {
		return namespaceOf(obj) == namespace
	}}
}

// namespaceOf returns the namespace of an object in an event.
func namespaceOf(obj any) string {
	if deleted, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
		if namespace, _, err := toolscache.SplitMetaNamespaceKey(deleted.Key); err == nil {
			return namespace
		}
		obj = deleted.Obj
	}
	if object, ok := obj.(metav1.Object); ok {
		return object.GetNamespace()
	}
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return ""
	}
	return accessor.GetNamespace()
}
