// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// bare is a controller written by hand on controller-runtime, with its priority
// queue and a Kind source for each cluster's cache.
type bare struct {
	tb         testing.TB
	controller controller.TypedController[bareRequest]
	filter     predicate.Predicate
	ctx        context.Context
	cancel     context.CancelFunc
	running    sync.WaitGroup

	mu     sync.Mutex        // guards joined
	joined map[string]func() // stops a cluster, by name
}

// bareRequest is a request with the name of its cluster.
type bareRequest struct {
	reconcile.Request
	cluster string
}

func startBare(tb testing.TB, _ member, o observer) contender {
	tb.Helper()
	c, err := controller.NewTypedUnmanaged("bare", controller.TypedOptions[bareRequest]{
		MaxConcurrentReconciles: workers,
		SkipNameValidation:      ptr.To(true),
		Reconciler: reconcile.TypedFunc[bareRequest](func(_ context.Context, req bareRequest) (reconcile.Result, error) {
			o.reconcile(object{req.cluster, req.Name})
			return reconcile.Result{}, nil
		}),
	})
	if err != nil {
		tb.Fatal(err)
	}
	b := &bare{tb: tb, controller: c, filter: o.filter(), joined: map[string]func(){}}
	b.ctx, b.cancel = context.WithCancel(context.Background())

	// The controller waits for sources that are added before it starts, and
	// would fail because of a dead cluster.
	started := make(chan struct{})
	err = c.Watch(source.TypedFunc[bareRequest](func(context.Context, workqueue.TypedRateLimitingInterface[bareRequest]) error {
		close(started)
		return nil
	}))
	if err != nil {
		tb.Fatal(err)
	}
	b.running.Go(func() {
		if err := c.Start(b.ctx); err != nil {
			tb.Errorf("the controller failed: %v", err)
		}
	})
	<-started
	return b
}

func (b *bare) join(c member) {
	cl, err := cluster.New(c.Config())
	if err != nil {
		b.tb.Errorf("cannot create the cluster for %s: %v", c.Name(), err)
		return
	}
	ctx, cancel := context.WithCancel(b.ctx)
	ended := make(chan struct{})
	b.running.Go(func() {
		defer close(ended)
		if err := cl.Start(ctx); err != nil {
			b.tb.Errorf("%s failed: %v", c.Name(), err)
		}
		cl.GetHTTPClient().CloseIdleConnections()
	})
	b.mu.Lock()
	b.joined[c.Name()] = func() {
		cancel()
		<-ended
	}
	b.mu.Unlock()
	if err := b.controller.Watch(source.TypedKind(cl.GetCache(), client.Object(&corev1.ConfigMap{}), enqueueFor(c.Name()), b.filter)); err != nil {
		b.tb.Errorf("cannot watch %s: %v", c.Name(), err)
	}
}

func (b *bare) leave(c member) {
	b.mu.Lock()
	leave := b.joined[c.Name()]
	delete(b.joined, c.Name())
	b.mu.Unlock()
	leave()
}

func (b *bare) stop() {
	b.cancel()
	b.running.Wait()
}

// enqueueFor enqueues the event's object with the name of the cluster.
func enqueueFor(cluster string) handler.TypedEventHandler[client.Object, bareRequest] {
	type queue = workqueue.TypedRateLimitingInterface[bareRequest]
	add := func(q queue, obj client.Object) {
		q.Add(bareRequest{reconcile.Request{NamespacedName: client.ObjectKeyFromObject(obj)}, cluster})
	}
	return handler.TypedFuncs[client.Object, bareRequest]{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) { add(q, e.Object) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) { add(q, e.ObjectNew) },
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) { add(q, e.Object) },
	}
}
