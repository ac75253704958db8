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

// lookups are the running informer lookups of a source, at most one per cluster.
// A lookup cannot be cancelled while the API server does not answer which kinds
// it has, since a REST mapper takes no context. So a retry joins the running
// lookup, and callers stop waiting when their context ends. The lookup ends with
// the request, at the latest when the connections of the cluster are closed.
type lookups struct {
	mu      sync.Mutex // guards the map and the fields of each lookup, but for its result
	running map[cluster.Cluster]*lookup
}

// lookup is one search for the informer of a kind in a cluster.
type lookup struct {
	done     chan struct{}
	informer cache.Informer // informer and err are set when done is closed
	err      error

	waiting   int // number of callers that wait for the result
	cancel    context.CancelFunc
	abandoned bool // at some time no caller was waiting
}

// get returns the result of find, or the error of the context if that ends first.
func (l *lookups) get(ctx context.Context, cl cluster.Cluster, find func(context.Context) (cache.Informer, error)) (cache.Informer, error) {
	for {
		current := l.join(ctx, cl, find)
		select {
		case <-current.done:
		case <-ctx.Done():
			l.leave(current)
			return nil, ctx.Err()
		}
		if !l.wasAbandoned(current) {
			return current.informer, current.err
		}
	}
}

// join returns the running lookup of the cluster. It starts one if there is none.
func (l *lookups) join(ctx context.Context, cl cluster.Cluster, find func(context.Context) (cache.Informer, error)) *lookup {
	shared := reflect.ValueOf(cl).Comparable()
	l.mu.Lock()
	defer l.mu.Unlock()
	if shared {
		if current := l.running[cl]; current != nil {
			current.waiting++
			return current
		}
	}
	started := &lookup{done: make(chan struct{}), waiting: 1}
	ctx, started.cancel = context.WithCancel(context.WithoutCancel(ctx))
	if shared {
		if l.running == nil {
			l.running = map[cluster.Cluster]*lookup{}
		}
		l.running[cl] = started
	}
	go func() {
		defer started.cancel()
		started.informer, started.err = find(ctx)
		l.mu.Lock()
		defer l.mu.Unlock()
		if shared {
			delete(l.running, cl)
		}
		close(started.done)
	}()
	return started
}

// wasAbandoned reports whether the lookup may have been cancelled.
func (l *lookups) wasAbandoned(current *lookup) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return current.abandoned
}

// leave stops waiting for a lookup. It cancels the lookup if no caller waits.
func (l *lookups) leave(current *lookup) {
	l.mu.Lock()
	defer l.mu.Unlock()
	current.waiting--
	if current.waiting == 0 {
		current.abandoned = true
		current.cancel()
	}
}

// findInformer returns the informer of the object's kind. It first asks the API
// server where the kind is served. Otherwise the cache would do so while it holds
// a lock that all lookups of the cluster need. No informer is started after the
// context has ended.
func findInformer(ctx context.Context, cl cluster.Cluster, informers cache.Cache, obj client.Object, opts []cache.InformerGetOption) (cache.Informer, error) {
	if err := resolve(cl, obj); err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return informers.GetInformer(ctx, obj, opts...)
}

// resolve makes the cluster's REST mapper look up the object's kind.
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

// partOf returns the result of a method of a cluster, or nil if it panics: a fake
// cluster of a user's test may have only a cache.
func partOf[T any](get func() T) (part T) {
	defer func() { _ = recover() }()
	return get()
}
