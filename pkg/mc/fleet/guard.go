// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/rollcall-dev/rollcall/pkg/mc/internal/cachereads"
	"github.com/rollcall-dev/rollcall/pkg/mc/internal/informer"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
)

// readCheckInterval is how long a cache that was fresh counts as fresh for reads.
// Writes always look again.
const readCheckInterval = 100 * time.Millisecond

// guard refuses writes to one cluster that follow reads of caches, in any cluster,
// that are too old. It records the reads of the cluster's cache.
type guard struct {
	name      multicluster.ClusterName
	maxAge    time.Duration
	informers *informer.Set
	log       logr.Logger
	start     time.Time
	scheme    *runtime.Scheme // of the cache; set before that is used
	// outside has the reads that were made outside of reconciles.
	outside cachereads.Recorder

	mu     sync.RWMutex // guards what follows
	kinds  map[typeKey]*guardedKind
	byKind map[informer.Kind]*guardedKind
	ctx    context.Context // ends when the cluster is disengaged; nil before it is started
	tasks  sync.WaitGroup  // used by guardedKind.fresh while the context has not ended
}

// typeKey identifies the type of an object or list that is read.
type typeKey struct {
	goType reflect.Type
	kind   schema.GroupVersionKind // only of types for many kinds
}

func newGuard(name multicluster.ClusterName, maxAge time.Duration, informers *informer.Set, logger logr.Logger) *guard {
	return &guard{
		name: name, maxAge: maxAge, informers: informers, log: logger, start: time.Now(),
		kinds: map[typeKey]*guardedKind{}, byKind: map[informer.Kind]*guardedKind{},
	}
}

// apply makes a cluster use the guard.
func (g *guard) apply(o *cluster.Options) {
	newCache, newClient := o.NewCache, o.NewClient
	if newCache == nil {
		newCache = cache.New
	}
	if newClient == nil {
		newClient = client.New
	}
	o.NewCache = func(config *rest.Config, options cache.Options) (cache.Cache, error) {
		c, err := newCache(config, options)
		if err != nil {
			return nil, err
		}
		g.scheme = options.Scheme
		return &guardedCache{Cache: c, guard: g}, nil
	}
	o.NewClient = func(config *rest.Config, options client.Options) (client.Client, error) {
		c, err := newClient(config, options)
		if err != nil {
			return nil, err
		}
		return &guardedClient{Client: c, guard: g}, nil
	}
}

// kindOf returns the kind of an object or list, nil if it has none: it cannot be
// read either.
func (g *guard) kindOf(obj runtime.Object) *guardedKind {
	key := typeKey{goType: reflect.TypeOf(obj)}
	switch obj.(type) {
	case runtime.Unstructured, *metav1.PartialObjectMetadata, *metav1.PartialObjectMetadataList:
		key.kind = obj.GetObjectKind().GroupVersionKind()
	}
	g.mu.RLock()
	k := g.kinds[key]
	g.mu.RUnlock()
	if k != nil {
		return k
	}
	kind, err := informer.KindOf(obj, g.scheme)
	if err != nil {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if k = g.byKind[kind]; k == nil { // a list and its items have the same
		k = &guardedKind{guard: g, kind: kind}
		g.byKind[kind] = k
	}
	g.kinds[key] = k
	return k
}

// check returns an error if a write that is made with the context must be refused.
func (g *guard) check(ctx context.Context, verb string) error {
	recorder := cachereads.From(ctx)
	if recorder == nil {
		recorder = &g.outside
	}
	if err := recorder.Check(); err != nil {
		return fmt.Errorf("cluster %q: refused to %s: %w", g.name, verb, err)
	}
	return nil
}

// guardedKind is a kind whose cache was read. It is a cachereads.Cache.
type guardedKind struct {
	guard *guard
	kind  informer.Kind
	// freshUntil is until when reads need not look, in nanoseconds since start.
	freshUntil atomic.Int64

	mu      sync.Mutex    // guards waiting
	waiting chan struct{} // closed when the cache is fresh, nil if nothing waits for that
}

// Check implements cachereads.Cache.
func (k *guardedKind) Check() error {
	f, known := k.guard.informers.Freshness(k.kind, k.guard.maxAge)
	if known && f.FreshFor >= 0 {
		return nil
	}
	return k.stale(&f)
}

func (k *guardedKind) stale(f *informer.Freshness) error {
	return &StaleCacheError{
		Cluster: k.guard.name, Resource: cmp.Or(f.Resource, k.kind.String()),
		InStep: f.InStep, MaxAge: k.guard.maxAge, Err: f.Err, cache: k,
	}
}

// read runs a read of the cache and records it.
func (k *guardedKind) read(ctx context.Context, read func() error) error {
	g, recorder := k.guard, cachereads.From(ctx)
	var before error
	if now := time.Since(g.start); recorder != nil && int64(now) >= k.freshUntil.Load() {
		// A cache that is not filled yet is waited for.
		if f, known := g.informers.Freshness(k.kind, g.maxAge); known && !f.InStep.IsZero() {
			if f.FreshFor < 0 {
				before = k.stale(&f)
			}
			k.freshUntil.Store(int64(now + min(f.FreshFor, readCheckInterval)))
		}
	}
	if recorder == nil {
		recorder = &g.outside
	}
	err := read()
	recorder.Add(k, before)
	return err
}

// fresh returns a channel that is closed when the cache is fresh, or the cluster is
// disengaged. It is nil if it was disengaged before.
func (k *guardedKind) fresh(err *StaleCacheError) <-chan struct{} {
	g := k.guard
	g.mu.RLock() // held until the task is counted
	defer g.mu.RUnlock()
	if g.ctx == nil || g.ctx.Err() != nil {
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.waiting == nil {
		waiting := make(chan struct{})
		k.waiting = waiting
		g.log.Info("Cache is too old, refused a write that follows from it", "resource", err.Resource, "inStep", err.InStep)
		g.tasks.Go(func() {
			g.informers.AwaitFresh(g.ctx, k.kind, g.maxAge)
			if g.ctx.Err() == nil {
				g.log.Info("Cache is fresh again", "resource", err.Resource)
			}
			k.mu.Lock()
			defer k.mu.Unlock()
			k.waiting = nil
			close(waiting)
		})
	}
	return k.waiting
}

// run runs the cache, and ends the tasks of the guard with it.
func (g *guard) run(ctx context.Context, start func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	g.mu.Lock()
	g.ctx = ctx
	g.mu.Unlock()
	defer func() {
		g.mu.Lock() // a task may be starting
		cancel()
		g.mu.Unlock()
		g.tasks.Wait()
	}()
	return start(ctx)
}

// guardedCache records the reads of a cache.
type guardedCache struct {
	cache.Cache
	guard *guard
}

// Start implements cache.Cache.
func (c *guardedCache) Start(ctx context.Context) error { return c.guard.run(ctx, c.Cache.Start) }

// Get implements client.Reader.
func (c *guardedCache) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	k := c.guard.kindOf(obj)
	if k == nil {
		return c.Cache.Get(ctx, key, obj, opts...)
	}
	return k.read(ctx, func() error { return c.Cache.Get(ctx, key, obj, opts...) })
}

// List implements client.Reader.
func (c *guardedCache) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	k := c.guard.kindOf(list)
	if k == nil {
		return c.Cache.List(ctx, list, opts...)
	}
	return k.read(ctx, func() error { return c.Cache.List(ctx, list, opts...) })
}

// guardedClient refuses writes that follow from what is missing in a cache.
type guardedClient struct {
	client.Client
	guard *guard
}

// Create implements client.Writer.
func (c *guardedClient) Create(ctx context.Context, obj client.Object, opts ...client.CreateOption) error {
	if err := c.guard.check(ctx, "create"); err != nil {
		return err
	}
	return c.Client.Create(ctx, obj, opts...)
}

// Delete implements client.Writer.
func (c *guardedClient) Delete(ctx context.Context, obj client.Object, opts ...client.DeleteOption) error {
	if err := c.guard.check(ctx, "delete"); err != nil {
		return err
	}
	return c.Client.Delete(ctx, obj, opts...)
}

// DeleteAllOf implements client.Writer.
func (c *guardedClient) DeleteAllOf(ctx context.Context, obj client.Object, opts ...client.DeleteAllOfOption) error {
	if err := c.guard.check(ctx, "delete"); err != nil {
		return err
	}
	return c.Client.DeleteAllOf(ctx, obj, opts...)
}

// SubResource implements client.SubResourceClientConstructor.
func (c *guardedClient) SubResource(name string) client.SubResourceClient {
	inner := c.Client.SubResource(name)
	if name != "eviction" {
		return inner
	}
	return &guardedEviction{SubResourceClient: inner, guard: c.guard}
}

// guardedEviction refuses evictions, which delete.
type guardedEviction struct {
	client.SubResourceClient
	guard *guard
}

// Create implements client.SubResourceWriter.
func (c *guardedEviction) Create(ctx context.Context, obj, subResource client.Object, opts ...client.SubResourceCreateOption) error {
	if err := c.guard.check(ctx, "evict"); err != nil {
		return err
	}
	return c.SubResourceClient.Create(ctx, obj, subResource, opts...)
}
