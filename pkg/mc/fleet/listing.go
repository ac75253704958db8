// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
)

// listings are the first listings of one cluster's informers. Those who wait
// for informers look at them now and then; a place in the gate is too dear for
// that.
type listings struct {
	mu      sync.Mutex        // guards synced
	synced  []<-chan struct{} // one for each informer, closed when it has synced
	created chan struct{}     // holds a token when there is another one
}

func newListings() *listings {
	return &listings{created: make(chan struct{}, 1)}
}

// newInformer is what a cache makes its informers with.
func (l *listings) newInformer(lw cache.ListerWatcher, obj runtime.Object, resync time.Duration, indexers cache.Indexers) cache.SharedIndexInformer {
	informer := newDrainedInformer(lw, obj, resync, indexers)
	l.add(informer.HasSyncedChecker().Done())
	return informer
}

func (l *listings) add(synced <-chan struct{}) {
	l.mu.Lock()
	l.synced = append(l.synced, synced)
	l.mu.Unlock()
	select {
	case l.created <- struct{}{}:
	default:
	}
}

// since returns those that were added after the first n.
func (l *listings) since(n int) []<-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.synced[n:])
}

func (l *listings) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.synced)
}

// wait returns when there are more than n and all of them have synced, or with
// the context. It is for one at a time.
func (l *listings) wait(ctx context.Context, n int) {
	for {
		added := l.since(n)
		for _, synced := range added {
			select {
			case <-synced:
			case <-ctx.Done():
				return
			}
		}
		n += len(added)
		if len(added) > 0 && l.count() == n {
			return
		}
		select {
		case <-l.created:
		case <-ctx.Done():
			return
		}
	}
}
