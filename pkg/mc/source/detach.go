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

	"github.com/rollcall-dev/rollcall/pkg/mc/internal/sources"
)

// detachingCache is a cache that removes the event handlers added through it when
// a context ends. Its WaitForCacheSync waits only for these handlers and returns
// as soon as they have synced, while that of the cache polls all informers.
type detachingCache struct {
	cache.Cache
	cluster cluster.Cluster
	lookups *lookups

	answered chan struct{} // receives a token for each result of a lookup or list

	mu       sync.Mutex // guards what follows
	ended    bool
	attached []attachment
	found    bool  // the informer was found
	failure  error // of the last lookup
	denied   error // of the last list, if the informer reports it
}

func newDetachingCache(cl cluster.Cluster, l *lookups) *detachingCache {
	return &detachingCache{Cache: cl.GetCache(), cluster: cl, lookups: l, answered: make(chan struct{}, 1)}
}

// attachment is an event handler that was added to an informer.
type attachment struct {
	informer     cache.Informer
	registration toolscache.ResourceEventHandlerRegistration
}

func (c *detachingCache) GetInformer(ctx context.Context, obj client.Object, opts ...cache.InformerGetOption) (cache.Informer, error) {
	opts = append(opts, cache.BlockUntilSynced(false))
	informer, err := c.lookups.get(ctx, c.cluster, func(ctx context.Context) (cache.Informer, error) {
		return findInformer(ctx, c.cluster, c.Cache, obj, opts)
	})
	c.noteAnswer(err)
	if err != nil {
		return nil, err
	}
	if reporter, ok := informer.(sources.ListErrorReporter); ok {
		reporter.OnListError(ctx, c.noteDenied)
	}
	return &detachingInformer{Informer: informer, cache: c}, nil
}

func (c *detachingCache) noteAnswer(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.found, c.failure = err == nil, err
	c.notify()
}

func (c *detachingCache) noteDenied(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.denied = err
	c.notify()
}

func (c *detachingCache) notify() {
	select {
	case c.answered <- struct{}{}:
	default:
	}
}

// takeFailure returns the error of the last lookup, or that of a list since the last
// call.
func (c *detachingCache) takeFailure() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	err := c.failure
	if err == nil && c.denied != nil {
		err = cannotList(c.denied)
	}
	c.denied = nil
	return err
}

// answer reports whether the informer was found, and the error of the last lookup.
func (c *detachingCache) answer() (found bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.found, c.failure
}

// WaitForCacheSync returns true when the handlers have received their initial
// events, and false if the context ends first.
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

// detachOnEnd removes the handlers when the context ends, and those that are added
// afterwards.
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
	// The only error is a registration of another informer.
	_ = a.informer.RemoveEventHandler(a.registration)
}

// detachingInformer is an informer of a detachingCache.
type detachingInformer struct {
	cache.Informer
	cache *detachingCache
}

// AddEventHandlerWithOptions is the method that controller-runtime's Kind source
// calls.
func (i *detachingInformer) AddEventHandlerWithOptions(handler toolscache.ResourceEventHandler, options toolscache.HandlerOptions) (toolscache.ResourceEventHandlerRegistration, error) {
	registration, err := i.Informer.AddEventHandlerWithOptions(handler, options)
	if err == nil {
		i.cache.attach(attachment{informer: i.Informer, registration: registration})
	}
	return registration, err
}
