// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"sync"

	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
)

// detachingCache is a cache whose informers forget the event handlers that
// were added through it when a context ends. It waits for these handlers alone,
// as soon as they have had their initial events: the cache's own ways to wait
// look ten times a second, and for all informers of the cluster.
type detachingCache struct {
	cache.Cache
	cluster  cluster.Cluster
	searches *searches

	answered chan struct{} // holds a token when there is another answer

	mu       sync.Mutex // guards what follows
	ended    bool
	attached []attachment
	found    bool  // an informer has been found
	failure  error // why it was not when that was last tried
}

func newDetachingCache(cl cluster.Cluster, s *searches) *detachingCache {
	return &detachingCache{Cache: cl.GetCache(), cluster: cl, searches: s, answered: make(chan struct{}, 1)}
}

type attachment struct {
	informer     cache.Informer
	registration toolscache.ResourceEventHandlerRegistration
}

func (c *detachingCache) GetInformer(ctx context.Context, obj client.Object, opts ...cache.InformerGetOption) (cache.Informer, error) {
	opts = append(opts, cache.BlockUntilSynced(false))
	informer, err := c.searches.await(ctx, c.cluster, func(ctx context.Context) (cache.Informer, error) {
		return findInformer(ctx, c.cluster, c.Cache, obj, opts)
	})
	c.noteAnswer(err)
	if err != nil {
		return nil, err
	}
	return &detachingInformer{Informer: informer, cache: c}, nil
}

func (c *detachingCache) noteAnswer(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.found, c.failure = err == nil, err
	select {
	case c.answered <- struct{}{}:
	default:
	}
}

// answer tells whether an informer has been found, and if it was looked for and
// not found, why.
func (c *detachingCache) answer() (found bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.found, c.failure
}

// WaitForCacheSync returns true when the handlers have had their initial
// events, and false if the context ends before that.
func (c *detachingCache) WaitForCacheSync(ctx context.Context) bool {
	c.mu.Lock()
	ended, attached := c.ended, c.attached
	c.mu.Unlock()
	for _, a := range attached {
		select {
		case <-a.registration.HasSyncedChecker().Done():
		case <-ctx.Done():
			return false
		}
	}
	return !ended
}

// detachOnEnd takes the handlers off when the context ends, also those that
// are added just then.
func (c *detachingCache) detachOnEnd(ctx context.Context) {
	context.AfterFunc(ctx, func() {
		c.mu.Lock()
		c.ended = true
		attached := c.attached
		c.attached = nil
		c.mu.Unlock()
		for _, a := range attached {
			a.detach()
		}
	})
}

func (c *detachingCache) attach(a attachment) {
	c.mu.Lock()
	ended := c.ended
	if !ended {
		c.attached = append(c.attached, a)
	}
	c.mu.Unlock()
	if ended {
		a.detach()
	}
}

func (a attachment) detach() {
	// The only error is that of a registration which is not the informer's.
	_ = a.informer.RemoveEventHandler(a.registration)
}

type detachingInformer struct {
	cache.Informer
	cache *detachingCache
}

// AddEventHandlerWithOptions is how controller-runtime's Kind source adds its
// handler.
func (i *detachingInformer) AddEventHandlerWithOptions(handler toolscache.ResourceEventHandler, options toolscache.HandlerOptions) (toolscache.ResourceEventHandlerRegistration, error) {
	registration, err := i.Informer.AddEventHandlerWithOptions(handler, options)
	if err == nil {
		i.cache.attach(attachment{informer: i.Informer, registration: registration})
	}
	return registration, err
}
