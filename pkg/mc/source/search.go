// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"reflect"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
)

// searches are those of a source for its informers, one at a time in each
// cluster. A search cannot be ended while the API server does not answer which
// kinds it has: a REST mapper takes no context. So who tries again joins the one
// that is under way, and nobody waits for it in the end. It ends with the
// request, at the latest when the client's retries do once the cluster's
// connections are closed.
type searches struct {
	mu      sync.Mutex // guards what follows, and what the searches say
	running map[cluster.Cluster]*search
}

type search struct {
	done     chan struct{}
	informer cache.Informer // this and err may be read once done is closed
	err      error

	waiting   int // how many wait for it
	abandon   context.CancelFunc
	abandoned bool // for a time nobody waited for it
}

// await returns the informer that find returns. If the context ends before
// that, await returns its error, and find goes on alone.
func (all *searches) await(ctx context.Context, cl cluster.Cluster, find func(context.Context) (cache.Informer, error)) (cache.Informer, error) {
	for {
		s := all.join(ctx, cl, find)
		select {
		case <-s.done:
		case <-ctx.Done():
			all.leave(s)
			return nil, ctx.Err()
		}
		if !all.wasAbandoned(s) {
			return s.informer, s.err
		}
	}
}

// join returns the search that is under way in the cluster, a new one if there
// is none.
func (all *searches) join(ctx context.Context, cl cluster.Cluster, find func(context.Context) (cache.Informer, error)) *search {
	shared := reflect.ValueOf(cl).Comparable()
	all.mu.Lock()
	defer all.mu.Unlock()
	if shared {
		if s := all.running[cl]; s != nil {
			s.waiting++
			return s
		}
	}
	s := &search{done: make(chan struct{}), waiting: 1}
	ctx, s.abandon = context.WithCancel(context.WithoutCancel(ctx))
	if shared {
		if all.running == nil {
			all.running = map[cluster.Cluster]*search{}
		}
		all.running[cl] = s
	}
	go func() {
		defer s.abandon()
		s.informer, s.err = find(ctx)
		all.mu.Lock()
		defer all.mu.Unlock()
		if shared {
			delete(all.running, cl)
		}
		close(s.done)
	}()
	return s
}

// wasAbandoned tells whether the search may have ended because nobody waited.
func (all *searches) wasAbandoned(s *search) bool {
	all.mu.Lock()
	defer all.mu.Unlock()
	return s.abandoned
}

func (all *searches) leave(s *search) {
	all.mu.Lock()
	defer all.mu.Unlock()
	s.waiting--
	if s.waiting == 0 {
		s.abandoned = true
		s.abandon()
	}
}

// findInformer returns the informer of the object's kind. The API server is asked
// where that is served before the cache is, which would hold a lock meanwhile
// that all others need who look for an informer in this cluster. None is
// started for nobody.
func findInformer(ctx context.Context, cl cluster.Cluster, informers cache.Cache, obj client.Object, opts []cache.InformerGetOption) (cache.Informer, error) {
	if err := resolve(cl, obj); err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return informers.GetInformer(ctx, obj, opts...)
}

// resolve returns once the cluster's REST mapper knows where the object's kind
// is served, or why it does not.
func resolve(cl cluster.Cluster, obj client.Object) error {
	scheme, mapper := partOf(cl.GetScheme), partOf(cl.GetRESTMapper)
	if scheme == nil || mapper == nil {
		return nil
	}
	kind, err := apiutil.GVKForObject(obj, scheme)
	if err != nil {
		return err
	}
	_, err = mapper.RESTMapping(kind.GroupKind(), kind.Version)
	return err
}

// partOf returns what a method of a cluster returns, nil if it panics: the
// cluster of a user's test may have nothing but a cache.
func partOf[T any](get func() T) (part T) {
	defer func() { _ = recover() }()
	return get()
}
