// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"slices"
	"sync"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/rollcall-dev/rollcall/pkg/mc/internal/sources"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
	mcreconcile "github.com/rollcall-dev/rollcall/pkg/mc/reconcile"
)

// ClusterEventType is the type of a ClusterEvent.
type ClusterEventType string

const (
	// ClusterEngaged: the controller is engaged with the cluster.
	ClusterEngaged ClusterEventType = "Engaged"
	// ClusterChanged: the provider has called NotifyChange of the cluster's
	// multicluster.Engagement. One event may stand for several changes.
	ClusterChanged ClusterEventType = "Changed"
	// ClusterDisengaged: the controller is no longer engaged with the cluster.
	ClusterDisengaged ClusterEventType = "Disengaged"
)

// ClusterEvent is an event of a cluster itself.
type ClusterEvent struct {
	// Type is the type of the event.
	Type ClusterEventType
	// ClusterName is the name of the cluster.
	ClusterName multicluster.ClusterName
	// Cluster is the cluster. After ClusterDisengaged it must not be used for
	// requests.
	Cluster cluster.Cluster
}

// ClusterLifecycle is a source of events of the clusters themselves. It enqueues a
// Request with the name of the cluster, and no object, when a cluster is engaged,
// has changed, or is disengaged. Use it with WatchesRawSource of the builder or
// Watch of the controller:
//
//	mcbuilder.ControllerManagedBy(mgr).Named("clusters").
//		WatchesRawSource(mcsource.ClusterLifecycle())
func ClusterLifecycle() source.TypedSource[mcreconcile.Request] {
	return TypedClusterLifecycle(func(_ context.Context, e ClusterEvent) []mcreconcile.Request {
		return []mcreconcile.Request{{ClusterName: e.ClusterName}}
	})
}

// TypedClusterLifecycle is ClusterLifecycle with a function that maps events to
// requests of any clusters. The function is called from one goroutine. It must
// return when its context ends: the controller's Start waits for it.
func TypedClusterLifecycle[request mcreconcile.ClusterAware[request]](fn func(context.Context, ClusterEvent) []request) source.TypedSource[request] {
	return &lifecycle[request]{fn: fn, wake: make(chan struct{}, 1), changed: map[multicluster.ClusterName]struct{}{}}
}

// lifecycle is the source of cluster events.
type lifecycle[request mcreconcile.ClusterAware[request]] struct {
	fn   func(context.Context, ClusterEvent) []request
	wake chan struct{} // has a token while there are events

	running sync.WaitGroup // the goroutine of Start

	mu      sync.Mutex // guards what follows
	events  []ClusterEvent
	changed map[multicluster.ClusterName]struct{} // clusters whose last event is a change
	started bool
}

var (
	_ sources.Awaited        = &lifecycle[mcreconcile.Request]{}
	_ sources.ClusterWatcher = &lifecycle[mcreconcile.Request]{}
)

// ClusterEngaged implements sources.ClusterWatcher.
func (l *lifecycle[request]) ClusterEngaged(ctx context.Context, name multicluster.ClusterName, cl cluster.Cluster) {
	l.add(ClusterEvent{Type: ClusterEngaged, ClusterName: name, Cluster: cl})
	multicluster.EngagementFrom(ctx).OnChange(ctx, func() {
		l.add(ClusterEvent{Type: ClusterChanged, ClusterName: name, Cluster: cl})
	})
}

// ClusterDisengaged implements sources.ClusterWatcher.
func (l *lifecycle[request]) ClusterDisengaged(name multicluster.ClusterName, cl cluster.Cluster) {
	l.add(ClusterEvent{Type: ClusterDisengaged, ClusterName: name, Cluster: cl})
}

func (l *lifecycle[request]) add(e ClusterEvent) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, changed := l.changed[e.ClusterName]; changed && e.Type == ClusterChanged {
		return // there is a pending event for earlier changes
	}
	delete(l.changed, e.ClusterName)
	if !l.started && e.Type == ClusterDisengaged {
		// No event of the cluster was delivered. Before the start, which may be
		// weeks away on a stand-by replica, events must not pile up.
		l.events = slices.DeleteFunc(l.events, func(other ClusterEvent) bool { return other.ClusterName == e.ClusterName })
		return
	}
	if e.Type == ClusterChanged {
		l.changed[e.ClusterName] = struct{}{}
	}
	l.events = append(l.events, e)
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

func (l *lifecycle[request]) take() []ClusterEvent {
	l.mu.Lock()
	defer l.mu.Unlock()
	events := l.events
	l.events = nil
	clear(l.changed)
	return events
}

// Start implements source.TypedSource.
func (l *lifecycle[request]) Start(ctx context.Context, queue workqueue.TypedRateLimitingInterface[request]) error {
	l.mu.Lock()
	l.started = true
	l.mu.Unlock()
	l.running.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-l.wake:
			}
			for _, e := range l.take() {
				if ctx.Err() != nil {
					return
				}
				for _, req := range l.fn(ctx, e) {
					queue.Add(req)
				}
			}
		}
	})
	return nil
}

// Wait implements sources.Awaited.
func (l *lifecycle[request]) Wait() {
	l.running.Wait()
}

func (l *lifecycle[request]) String() string {
	return "cluster lifecycle source"
}
