// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Package informer makes informers that leave no goroutine behind.
package informer

import (
	"context"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// New returns a cache.NewSharedIndexInformer that drains stopped watches. Without
// that, controller-runtime's metadata watches keep a goroutine that blocks on an
// event which is never received.
func New(lw cache.ListerWatcher, obj runtime.Object, resync time.Duration, indexers cache.Indexers) cache.SharedIndexInformer {
	source := cache.ToListerWatcherWithContext(lw)
	return cache.NewSharedIndexInformer(&cache.ListWatch{
		ListWithContextFunc: source.ListWithContext,
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			w, err := source.WatchWithContext(ctx, options)
			if err != nil {
				return nil, err
			}
			return &drainedWatch{Interface: w}, nil
		},
	}, obj, resync, indexers)
}

// drainedWatch discards the events that arrive after Stop.
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
