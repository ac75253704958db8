// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// newDrainedInformer is cache.NewSharedIndexInformer, but drains watches that
// are stopped. controller-runtime's watches of metadata have a goroutine that
// would stay for good with an event which nobody takes.
func newDrainedInformer(lw cache.ListerWatcher, obj runtime.Object, resync time.Duration, indexers cache.Indexers) cache.SharedIndexInformer {
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

type drainedWatch struct {
	watch.Interface
	once sync.Once
}

// Stop implements watch.Interface. What still comes is thrown away, until the
// watch has ended.
func (w *drainedWatch) Stop() {
	w.Interface.Stop()
	w.once.Do(func() {
		go func() {
			for range w.ResultChan() {
			}
		}()
	})
}
