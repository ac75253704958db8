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

	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
	mcreconcile "github.com/rollcall-dev/rollcall/pkg/mc/reconcile"
)

// ClusterEventType is what has happened to a cluster.
type ClusterEventType string

const (
	// ClusterJoined: the controller has been engaged with the cluster.
	ClusterJoined ClusterEventType = "Joined"
	// ClusterChanged: what is known of the cluster has changed, and the provider
	// has notified its multicluster.Engagement. Several changes may come as one.
	ClusterChanged ClusterEventType = "Changed"
	// ClusterLeft: the cluster is engaged no longer.
	ClusterLeft ClusterEventType = "Left"
)

// ClusterEvent tells what has happened to a cluster.
type ClusterEvent struct {
	// Type is what has happened.
	Type ClusterEventType
	// ClusterName is the name under which the cluster is or was engaged.
	ClusterName multicluster.ClusterName
	// Cluster is the cluster. Once it has left, it cannot be talked to.
	Cluster cluster.Cluster
}

// ClusterWatcher is a source that the controller tells of the clusters that it
// is engaged with. The methods return at once, and are called in the order in
// which things happen.
type ClusterWatcher interface {
	// ClusterJoined is called with each engagement. The context is the
	// engagement's and carries its multicluster.Engagement.
	ClusterJoined(ctx context.Context, name multicluster.ClusterName, cl cluster.Cluster)
	// ClusterLeft is told when an engagement has ended, after the cluster's
	// requests have been dropped.
	ClusterLeft(name multicluster.ClusterName, cl cluster.Cluster)
}

// ClusterLifecycle is a source of the clusters' own coming and going. It
// enqueues a Request for the cluster with an empty name and namespace when a
// cluster joins, changes or leaves. Give it to WatchesRawSource of the builder
// or to Watch of the controller:
//
//	mcbuilder.ControllerManagedBy(mgr).Named("clusters").
//		WatchesRawSource(mcsource.ClusterLifecycle())
func ClusterLifecycle() source.TypedSource[mcreconcile.Request] {
	return TypedClusterLifecycle(func(_ context.Context, e ClusterEvent) []mcreconcile.Request {
		return []mcreconcile.Request{{ClusterName: e.ClusterName}}
	})
}

// TypedClusterLifecycle is a source of the clusters' own coming and going. It
// enqueues what the function makes of each event, for the clusters that the
// requests name. The function is called from one goroutine, and must return
// when its context ends: the controller's Start waits for it.
func TypedClusterLifecycle[request mcreconcile.ClusterAware[request]](fn func(context.Context, ClusterEvent) []request) source.TypedSource[request] {
	return &lifecycle[request]{fn: fn, wake: make(chan struct{}, 1), changed: map[multicluster.ClusterName]struct{}{}}
}

type lifecycle[request mcreconcile.ClusterAware[request]] struct {
	fn   func(context.Context, ClusterEvent) []request
	wake chan struct{} // holds a token when there are events

	running sync.WaitGroup // counts what Start has started

	mu      sync.Mutex // guards what follows
	events  []ClusterEvent
	changed map[multicluster.ClusterName]struct{} // whose last event is a change
	started bool
}

var (
	_ AwaitedSource  = &lifecycle[mcreconcile.Request]{}
	_ ClusterWatcher = &lifecycle[mcreconcile.Request]{}
)

func (l *lifecycle[request]) ClusterJoined(ctx context.Context, name multicluster.ClusterName, cl cluster.Cluster) {
	l.add(ClusterEvent{Type: ClusterJoined, ClusterName: name, Cluster: cl})
	multicluster.EngagementFrom(ctx).OnChange(ctx, func() {
		l.add(ClusterEvent{Type: ClusterChanged, ClusterName: name, Cluster: cl})
	})
}

func (l *lifecycle[request]) ClusterLeft(name multicluster.ClusterName, cl cluster.Cluster) {
	l.add(ClusterEvent{Type: ClusterLeft, ClusterName: name, Cluster: cl})
}

func (l *lifecycle[request]) add(e ClusterEvent) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, changed := l.changed[e.ClusterName]; changed && e.Type == ClusterChanged {
		return // changes that nobody has looked at are one
	}
	delete(l.changed, e.ClusterName)
	if !l.started && e.Type == ClusterLeft {
		// Nobody has heard of the cluster, and there may be many before the start.
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

// Wait implements AwaitedSource.
func (l *lifecycle[request]) Wait() {
	l.running.Wait()
}

func (l *lifecycle[request]) String() string {
	return "cluster lifecycle source"
}
