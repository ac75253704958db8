// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package namespace

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/rollcall-dev/rollcall/pkg/inventory"
)

// syncNotice is how long the source waits for the namespaces before it logs that.
const syncNotice = 10 * time.Second

// source is the fleet's Source: it sends the namespaces.
type source struct {
	cluster  cluster.Cluster
	selector labels.Selector
}

// String names the source for logs.
func (s *source) String() string { return "namespaces" }

// Run implements inventory.Source.
func (s *source) Run(ctx context.Context, sink inventory.Sink) error {
	informer, err := s.cluster.GetCache().GetInformer(ctx, &corev1.Namespace{}, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("cannot watch namespaces: %w", err)
	}
	w := &watcher{source: s, ctx: ctx, sink: sink, sent: map[string]*inventory.Profile{}}
	handle, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    w.put,
		UpdateFunc: func(_, obj any) { w.put(obj) },
		DeleteFunc: w.remove,
	})
	if err != nil {
		return fmt.Errorf("cannot watch namespaces: %w", err)
	}
	defer func() {
		_ = informer.RemoveEventHandler(handle)
		w.end()
	}()
	notice := time.AfterFunc(syncNotice, func() {
		log.FromContext(ctx).Info(`Namespaces have not been listed yet; see the log lines "Watch failed", and check that the cluster is started`)
	})
	defer notice.Stop()
	select {
	case <-handle.HasSyncedChecker().Done():
	case <-ctx.Done():
		return nil
	}
	notice.Stop()
	w.synced()
	<-ctx.Done()
	return nil
}

// watcher sends namespaces to the sink of one run.
type watcher struct {
	source *source
	ctx    context.Context // of the run

	mu    sync.Mutex // guards what follows, and the use of the sink
	sink  inventory.Sink
	ended bool
	sent  map[string]*inventory.Profile // by the name of the namespace
}

// put sends a namespace. One that is being deleted stays until it is gone, so that
// reconcilers can remove finalizers.
func (w *watcher) put(obj any) {
	namespace, ok := obj.(*corev1.Namespace)
	if !ok {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended {
		return
	}
	previous := w.sent[namespace.Name]
	if !w.source.selector.Matches(labels.Set(namespace.Labels)) {
		w.removeLocked(namespace.Name)
		return
	}
	if previous != nil && inventory.ClusterID(previous) != string(namespace.UID) {
		w.removeLocked(namespace.Name) // created again: its deletion was not seen
		previous = nil
	}
	profile, err := inventory.Synthesize(inventory.Synthetic{
		ClusterName: namespace.Name,
		Name:        namespace.Name,
		Manager:     "namespace",
		Labels:      namespace.Labels,
		ClusterID:   string(namespace.UID),
		Previous:    previous,
	})
	if err != nil {
		log.FromContext(w.ctx).Error(err, "Ignoring namespace", "namespace", namespace.Name)
		return
	}
	w.sent[namespace.Name] = profile
	w.sink.Put(profile)
}

func (w *watcher) remove(obj any) {
	if deleted, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
		obj = deleted.Obj
	}
	namespace, ok := obj.(*corev1.Namespace)
	if !ok {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.removeLocked(namespace.Name)
}

func (w *watcher) removeLocked(name string) {
	profile := w.sent[name]
	if profile == nil || w.ended {
		return
	}
	delete(w.sent, name)
	w.sink.Remove(inventory.KeyOf(profile))
}

func (w *watcher) synced() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sink.Synced()
}

// end waits for calls of the sink, and makes later ones do nothing.
func (w *watcher) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = true
}

// isContextError reports whether a request failed because its context ended.
func isContextError(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}
