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

// lookups are the searches of a source for its informers, one at a time in each
// cluster. A search cannot be ended while the API server does not answer which
// kinds it has: a REST mapper takes no context. So who tries again joins the one
// that is under way. It ends with the request, at the latest when the cluster's
// connections do.
type lookups struct {
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

// find returns the informer that look finds. If the context ends before that,
// find returns its error, and look goes on alone.
func (l *lookups) find(ctx context.Context, cl cluster.Cluster, look func(context.Context) (cache.Informer, error)) (cache.Informer, error) {
	for {
		s := l.join(ctx, cl, look)
		select {
		case <-s.done:
		case <-ctx.Done():
			l.leave(s)
			return nil, ctx.Err()
		}
		l.mu.Lock()
		again := s.abandoned && s.err != nil
		l.mu.Unlock()
		if !again {
			return s.informer, s.err
		}
	}
}

// join returns the search that is under way in the cluster, a new one if there
// is none.
func (l *lookups) join(ctx context.Context, cl cluster.Cluster, look func(context.Context) (cache.Informer, error)) *search {
	shared := reflect.ValueOf(cl).Comparable()
	l.mu.Lock()
	defer l.mu.Unlock()
	if shared {
		if s := l.running[cl]; s != nil {
			s.waiting++
			return s
		}
	}
	s := &search{done: make(chan struct{}), waiting: 1}
	ctx, s.abandon = context.WithCancel(context.WithoutCancel(ctx))
	if shared {
		if l.running == nil {
			l.running = map[cluster.Cluster]*search{}
		}
		l.running[cl] = s
	}
	go func() {
		defer s.abandon()
		s.informer, s.err = look(ctx)
		l.mu.Lock()
		defer l.mu.Unlock()
		if shared {
			delete(l.running, cl)
		}
		close(s.done)
	}()
	return s
}

func (l *lookups) leave(s *search) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s.waiting--
	if s.waiting == 0 {
		s.abandoned = true
		s.abandon()
	}
}

// lookUp returns the informer of the object's kind. The API server is asked
// where that is served before the cache is, which would hold a lock meanwhile
// that all others need who look for an informer in this cluster. None is
// started for nobody.
func lookUp(ctx context.Context, cl cluster.Cluster, informers cache.Cache, obj client.Object, opts []cache.InformerGetOption) (cache.Informer, error) {
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
func resolve(cl cluster.Cluster, obj client.Object) (err error) {
	// A cluster of a test may have nothing but a cache.
	defer func() {
		if recover() != nil {
			err = nil
		}
	}()
	kind, err := apiutil.GVKForObject(obj, cl.GetScheme())
	if err != nil {
		return err
	}
	_, err = cl.GetRESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
	return err
}
