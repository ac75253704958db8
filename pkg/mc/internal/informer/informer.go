// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/rollcall-dev/rollcall/pkg/mc/internal/sources"
)

// New returns a cache.NewSharedIndexInformer that belongs to the set. Its requests
// must pass through Transport.
func (s *Set) New(lw cache.ListerWatcher, obj runtime.Object, resync time.Duration, indexers cache.Indexers) cache.SharedIndexInformer {
	kind, _ := KindOf(obj, nil) // an object needs no scheme
	st := newStream(s, kind)
	st.informer = cache.NewSharedIndexInformer(st.listWatch(lw), obj, resync, indexers)
	s.add(st)
	return &reporting{SharedIndexInformer: st.informer, stream: st}
}

// NewInformerFunc is the type of cache.NewSharedIndexInformer.
type NewInformerFunc = func(cache.ListerWatcher, runtime.Object, time.Duration, cache.Indexers) cache.SharedIndexInformer

// With returns a function like New whose informers are those of another function.
func (s *Set) With(newInformer NewInformerFunc) NewInformerFunc {
	return func(lw cache.ListerWatcher, obj runtime.Object, resync time.Duration, indexers cache.Indexers) cache.SharedIndexInformer {
		kind, _ := KindOf(obj, nil)
		st := newStream(s, kind)
		st.informer = newInformer(st.listWatch(lw), obj, resync, indexers)
		s.add(st)
		return st.informer
	}
}

// listWatch returns a ListerWatcher whose requests are those of the stream.
func (st *stream) listWatch(lw cache.ListerWatcher) *cache.ListWatch {
	source := cache.ToListerWatcherWithContext(lw)
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			list, err := source.ListWithContext(context.WithValue(ctx, streamKey{}, st), options)
			err = expiredIfRestored(err)
			st.listed(err)
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			w, err := source.WatchWithContext(context.WithValue(ctx, streamKey{}, st), options)
			if err != nil {
				return nil, expiredIfRestored(err)
			}
			return &drainedWatch{Interface: w}, nil
		},
	}
}

// expiredIfRestored returns the error that makes a reflector list without a
// resource version.
func expiredIfRestored(err error) error {
	if errors.Is(err, errRestored) {
		return apierrors.NewResourceExpired(errRestored.Error())
	}
	return err
}

// reporting is an informer that reports why it cannot list.
type reporting struct {
	cache.SharedIndexInformer
	stream *stream
}

var _ sources.ListErrorReporter = &reporting{}

// OnListError implements sources.ListErrorReporter.
func (r *reporting) OnListError(ctx context.Context, report func(error)) {
	st := r.stream
	o := &observer{report: report}
	st.set.mu.Lock()
	st.observers = append(st.observers, o)
	err := st.denied
	st.set.mu.Unlock()
	context.AfterFunc(ctx, func() {
		st.set.mu.Lock()
		defer st.set.mu.Unlock()
		st.observers = slices.DeleteFunc(st.observers, func(other *observer) bool { return other == o })
	})
	if err != nil {
		report(err)
	}
}

type observer struct{ report func(error) }

// listed notes the result of a list.
func (st *stream) listed(err error) {
	if !apierrors.IsForbidden(err) && !apierrors.IsNotFound(err) && !apierrors.IsMethodNotSupported(err) {
		err = nil
	}
	st.set.mu.Lock()
	st.denied = err
	observers := slices.Clone(st.observers)
	st.set.mu.Unlock()
	if err == nil {
		return
	}
	for _, o := range observers {
		o.report(err)
	}
}

// drainedWatch discards the events that arrive after Stop. Without that,
// controller-runtime's metadata watches keep a goroutine that blocks on an event
// which is never received.
type drainedWatch struct {
	watch.Interface
	once sync.Once
}

// Stop implements watch.Interface.
func (w *drainedWatch) Stop() {
	w.Interface.Stop()
	w.once.Do(func() {
		go func() {
			for range w.ResultChan() {
			}
		}()
	})
}
