// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"context"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/rollcall-dev/rollcall/pkg/inventory"
)

// namespaceLimit is how long profiles that have been read wait for the labels
// of their namespaces.
const namespaceLimit = 10 * time.Second

var namespaceResource = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}

// reader runs the informers of one run of the source. They send what happens
// to the loop, which alone has the view.
type reader struct {
	source  *Source
	events  chan func(*view)
	running sync.WaitGroup
}

// send has the loop do something, and returns when the loop has taken it over
// or the context has ended.
func (r *reader) send(ctx context.Context, event func(*view)) {
	select {
	case r.events <- event:
	case <-ctx.Done():
	}
}

func (r *reader) loop(ctx context.Context, v *view) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case event := <-r.events:
			event(v)
		case <-timer.C:
		}
		if next, ok := v.advance(time.Now()); ok {
			timer.Reset(time.Until(next))
		}
	}
}

// start starts the informers. Those that it has started before an error end
// with the context.
func (r *reader) start(ctx context.Context, v *view) error {
	outages := newOutages()
	for _, namespace := range r.source.namespaces {
		if err := r.readProfiles(ctx, v, outages, namespace); err != nil {
			return err
		}
		if err := r.readNamespaces(ctx, v, namespace); err != nil {
			return err
		}
	}
	if r.source.options.Placement == nil {
		return nil
	}
	return r.readPlacement(ctx, outages)
}

func (r *reader) readProfiles(ctx context.Context, v *view, outages *outages, namespace string) error {
	v.unreadProfiles[namespace] = true
	profiles := r.source.client.ApisV1alpha1().ClusterProfiles(namespace)
	what := target{resource: "ClusterProfiles", namespace: namespace, kep: "KEP-4322"}
	selectors := metav1.ListOptions{}
	if s := r.source.options.LabelSelector; s != nil {
		selectors.LabelSelector = s.String()
	}
	if s := r.source.options.FieldSelector; s != nil {
		selectors.FieldSelector = s.String()
	}
	return r.inform(ctx, informing{
		example:   &inventory.Profile{},
		selectors: selectors,
		list: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return profiles.List(ctx, options)
		},
		watch:  profiles.Watch,
		answer: func(err error) { outages.note(ctx, what, err) },
		put: func(object any) func(*view) {
			return func(v *view) { v.putProfile(object.(*inventory.Profile)) }
		},
		remove: func(object any) func(*view) {
			return func(v *view) { v.removeProfile(inventory.KeyOf(object.(*inventory.Profile))) }
		},
		synced: func(v *view) { v.profilesRead(namespace, time.Now()) },
	})
}

// readNamespaces reads the labels of the namespace, or of all. Whoever may not
// does without.
func (r *reader) readNamespaces(ctx context.Context, v *view, namespace string) error {
	v.unreadNamespaces[namespace] = true
	selectors := metav1.ListOptions{}
	if namespace != "" {
		// A right to list and watch the namespace of this name is enough.
		selectors.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, namespace).String()
	}
	namespaces := r.source.metadata.Resource(namespaceResource)
	return r.inform(ctx, informing{
		example:   &metav1.PartialObjectMetadata{},
		selectors: selectors,
		list: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return namespaces.List(ctx, options)
		},
		watch: namespaces.Watch,
		answer: func(err error) {
			if apierrors.IsForbidden(err) {
				r.send(ctx, func(v *view) { v.namespacesRefused(namespace, err) })
			}
		},
		transform: keepClusterSet,
		put: func(object any) func(*view) {
			namespace := object.(*metav1.PartialObjectMetadata)
			return func(v *view) { v.putNamespace(namespace.Name, inventory.ClusterSetOfLabels(namespace.Labels)) }
		},
		remove: func(object any) func(*view) {
			namespace := object.(*metav1.PartialObjectMetadata)
			return func(v *view) { v.putNamespace(namespace.Name, "") }
		},
		synced: func(v *view) { v.namespacesRead(namespace) },
	})
}

// keepClusterSet keeps of a namespace no more than is asked of it.
func keepClusterSet(object any) (any, error) {
	namespace, ok := object.(*metav1.PartialObjectMetadata)
	if !ok {
		return object, nil
	}
	kept := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Name: namespace.Name, UID: namespace.UID, ResourceVersion: namespace.ResourceVersion,
	}}
	if set := inventory.ClusterSetOfLabels(namespace.Labels); set != "" {
		kept.Labels = map[string]string{inventory.LabelClusterSet: set}
	}
	return kept, nil
}

func (r *reader) readPlacement(ctx context.Context, outages *outages) error {
	placement := r.source.options.Placement
	decisions := r.source.client.ApisV1alpha1().PlacementDecisions(placement.Namespace)
	what := target{resource: "PlacementDecisions", namespace: placement.Namespace, kep: "KEP-5313"}
	return r.inform(ctx, informing{
		example:   &v1alpha1.PlacementDecision{},
		selectors: placement.selectors(),
		list: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return decisions.List(ctx, options)
		},
		watch: decisions.Watch,
		answer: func(err error) {
			outages.note(ctx, what, err)
			r.send(ctx, func(v *view) { v.placementAnswered(err == nil, time.Now()) })
		},
		put: func(object any) func(*view) {
			slice := object.(*v1alpha1.PlacementDecision)
			return func(v *view) { v.putSlice(slice, time.Now()) }
		},
		remove: func(object any) func(*view) {
			name := object.(*v1alpha1.PlacementDecision).Name
			return func(v *view) { v.removeSlice(name, time.Now()) }
		},
		synced: func(v *view) { v.placementRead(time.Now()) },
	})
}

// informing is what an informer needs to know.
type informing struct {
	example   runtime.Object
	selectors metav1.ListOptions
	list      cache.ListWithContextFunc
	watch     cache.WatchFuncWithContext
	// answer is told of the outcome of each request.
	answer    func(err error)
	transform cache.TransformFunc
	// put and remove make an event for the loop of an object of the example's
	// type.
	put, remove func(object any) func(*view)
	synced      func(*view)
}

// inform starts an informer. What it has listed at first reaches the loop
// before synced does.
func (r *reader) inform(ctx context.Context, in informing) error {
	narrow := func(options *metav1.ListOptions) {
		options.LabelSelector, options.FieldSelector = in.selectors.LabelSelector, in.selectors.FieldSelector
	}
	informer := cache.NewSharedIndexInformer(cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			narrow(&options)
			list, err := in.list(ctx, options)
			in.answer(err)
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			narrow(&options)
			w, err := startWatch(ctx, options, in.watch)
			in.answer(err)
			return w, err
		},
	}, r.source.client), in.example, 0, cache.Indexers{})
	if in.transform == nil {
		in.transform = ctrlcache.TransformStripManagedFields()
	}
	if err := informer.SetTransform(in.transform); err != nil {
		return err
	}
	// The outages tell of failures; client-go would do so with every retry.
	silent := func(context.Context, *cache.Reflector, error) {}
	if err := informer.SetWatchErrorHandlerWithContext(silent); err != nil {
		return err
	}
	registration, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { r.send(ctx, in.put(object)) },
		UpdateFunc: func(_, object any) { r.send(ctx, in.put(object)) },
		DeleteFunc: func(object any) {
			if tombstone, ok := object.(cache.DeletedFinalStateUnknown); ok {
				object = tombstone.Obj
			}
			r.send(ctx, in.remove(object))
		},
	})
	if err != nil {
		return fmt.Errorf("adding an event handler: %w", err)
	}
	r.running.Go(func() { informer.RunWithContext(ctx) })
	r.running.Go(func() {
		select {
		case <-registration.HasSyncedChecker().Done():
			r.send(ctx, in.synced)
		case <-ctx.Done():
		}
	})
	return nil
}

// startWatch starts a watch that goes on until it is stopped, whatever becomes
// of the context: Stop returns when the connection is free, the end of a context
// does not wait for that.
func startWatch(ctx context.Context, options metav1.ListOptions, start cache.WatchFuncWithContext) (watch.Interface, error) {
	requestCtx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	release := context.AfterFunc(ctx, cancel)
	w, err := start(requestCtx, options)
	if !release() || err != nil {
		cancel()
		return w, err
	}
	return &watching{Interface: w, cancel: cancel}, nil
}

// watching is a watch that has begun.
type watching struct {
	watch.Interface
	cancel context.CancelFunc // of its request
}

// Stop implements watch.Interface.
func (w *watching) Stop() {
	w.Interface.Stop()
	w.cancel()
}
