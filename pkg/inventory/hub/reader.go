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
	"github.com/rollcall-dev/rollcall/pkg/inventory/internal/metadata"
)

var namespaceResource = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}

// reader runs the informers of one run of the source. They send events to the
// loop, which alone uses the view.
type reader struct {
	source  *Source
	events  chan func(*view)
	running sync.WaitGroup

	profileVersion *versionLog
	scopeLogged    bool // used by readCachedProfiles
}

// send returns when the loop has received the event or the context has ended.
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

// start starts the informers. After an error, those already started run until the
// context ends.
func (r *reader) start(ctx context.Context, v *view) error {
	outages := &outages{reasons: map[target]string{}}
	for _, namespace := range r.source.namespaces {
		if r.source.options.usesCache() {
			r.readCachedProfiles(ctx, v, outages)
		} else if err := r.readProfiles(ctx, v, outages, namespace); err != nil {
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
	what := target{resource: "ClusterProfiles", namespace: namespace, kep: "KEP-4322"}
	selectors := metav1.ListOptions{}
	if s := r.source.options.LabelSelector; s != nil {
		selectors.LabelSelector = s.String()
	}
	if s := r.source.options.FieldSelector; s != nil {
		selectors.FieldSelector = s.String()
	}
	return inform(ctx, r, informerSpec[*inventory.Profile]{
		example:   &inventory.Profile{},
		selectors: selectors,
		client:    &versionedClient{clients: r.source.profileClients(namespace), log: r.profileVersion},
		observe: func(err error) {
			outages.observe(ctx, what, err)
			r.send(ctx, func(v *view) { v.setAvailable(namespace, err == nil, time.Now()) })
		},
		transform: func(object any) (any, error) {
			if profile, ok := object.(*inventory.Profile); ok {
				profile.ManagedFields = nil
				setVersion(profile)
			}
			return object, nil
		},
		put:    func(v *view, profile *inventory.Profile) { v.putProfile(profile) },
		remove: func(v *view, profile *inventory.Profile) { v.removeProfile(inventory.KeyOf(profile)) },
		synced: func(v *view) { v.profilesRead(namespace, time.Now()) },
	})
}

// readNamespaces reads the labels of the namespace, or of all, if it is allowed to.
func (r *reader) readNamespaces(ctx context.Context, v *view, namespace string) error {
	v.unreadNamespaces[namespace] = true
	selectors := metav1.ListOptions{}
	if namespace != "" {
		// Permission to list and watch the namespace by name is enough.
		selectors.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, namespace).String()
	}
	namespaces := r.source.metadata.Resource(namespaceResource)
	return inform(ctx, r, informerSpec[*metav1.PartialObjectMetadata]{
		example:   &metav1.PartialObjectMetadata{},
		selectors: selectors,
		client:    &versionedClient{clients: []apiClient{{namespaceResource.Version, lister(namespaces.List), namespaces.Watch}}},
		observe: func(err error) {
			if apierrors.IsForbidden(err) {
				r.send(ctx, func(v *view) { v.namespacesForbidden(namespace, err) })
			}
		},
		transform: keepClusterSet,
		put: func(v *view, ns *metav1.PartialObjectMetadata) {
			v.putNamespace(ns.Name, metadata.ClusterSet(ns.Labels))
		},
		remove: func(v *view, ns *metav1.PartialObjectMetadata) { v.putNamespace(ns.Name, "") },
		synced: func(v *view) { v.namespacesRead(namespace) },
	})
}

// keepClusterSet reduces a namespace to what is read of it.
func keepClusterSet(object any) (any, error) {
	namespace, ok := object.(*metav1.PartialObjectMetadata)
	if !ok {
		return object, nil
	}
	kept := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Name: namespace.Name, UID: namespace.UID, ResourceVersion: namespace.ResourceVersion,
	}}
	if set := metadata.ClusterSet(namespace.Labels); set != "" {
		kept.Labels = map[string]string{v1alpha1.LabelClusterSetKey: set}
	}
	return kept, nil
}

func (r *reader) readPlacement(ctx context.Context, outages *outages) error {
	placement := r.source.options.Placement
	what := target{resource: "PlacementDecisions", namespace: placement.Namespace, kep: "KEP-5313"}
	return inform(ctx, r, informerSpec[*v1alpha1.PlacementDecision]{
		example:   &v1alpha1.PlacementDecision{},
		selectors: placement.selectors(),
		client:    &versionedClient{clients: r.source.decisionClients(placement.Namespace), log: newVersionLog(decisionResource)},
		observe: func(err error) {
			outages.observe(ctx, what, err)
			r.send(ctx, func(v *view) { v.placement.setAvailable(err == nil, time.Now()) })
		},
		put:    func(v *view, slice *v1alpha1.PlacementDecision) { v.putSlice(slice, time.Now()) },
		remove: func(v *view, slice *v1alpha1.PlacementDecision) { v.removeSlice(slice.Name, time.Now()) },
		synced: func(v *view) { v.placementRead(time.Now()) },
	})
}

// informerSpec describes an informer and the handlers of its events, which the loop
// calls.
type informerSpec[T runtime.Object] struct {
	example     T
	selectors   metav1.ListOptions
	client      *versionedClient
	observe     func(err error)     // receives the outcome of each request
	transform   cache.TransformFunc // defaults to removing managed fields
	put, remove func(v *view, object T)
	synced      func(*view) // after the put of each object of the first list
}

// inform starts an informer that runs until the context ends.
func inform[T runtime.Object](ctx context.Context, r *reader, spec informerSpec[T]) error {
	narrow := func(options *metav1.ListOptions) {
		options.LabelSelector, options.FieldSelector = spec.selectors.LabelSelector, spec.selectors.FieldSelector
	}
	restored := &restoreCheck{list: spec.client.list}
	informer := cache.NewSharedIndexInformer(cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			narrow(&options)
			list, err := spec.client.listAll(ctx, options)
			spec.observe(err)
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			narrow(&options)
			err := restored.before(ctx, options)
			var w watch.Interface
			if err == nil {
				w, err = spec.client.watchAll(ctx, options)
			}
			spec.observe(err)
			return w, err
		},
	}, r.source.client), spec.example, 0, cache.Indexers{})
	if spec.transform == nil {
		spec.transform = ctrlcache.TransformStripManagedFields()
	}
	if err := informer.SetTransform(spec.transform); err != nil {
		return err
	}
	// outages logs failures; client-go would log each retry.
	silent := func(context.Context, *cache.Reflector, error) {}
	if err := informer.SetWatchErrorHandlerWithContext(silent); err != nil {
		return err
	}
	put := func(object any) { r.send(ctx, func(v *view) { spec.put(v, object.(T)) }) }
	registration, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    put,
		UpdateFunc: func(_, object any) { put(object) },
		DeleteFunc: func(object any) {
			if tombstone, ok := object.(cache.DeletedFinalStateUnknown); ok {
				object = tombstone.Obj
			}
			r.send(ctx, func(v *view) { spec.remove(v, object.(T)) })
		},
	})
	if err != nil {
		return fmt.Errorf("adding an event handler: %w", err)
	}
	r.running.Go(func() { informer.RunWithContext(ctx) })
	r.running.Go(func() {
		select {
		case <-registration.HasSyncedChecker().Done():
			r.send(ctx, spec.synced)
		case <-ctx.Done():
		}
	})
	return nil
}

// startWatch starts a watch that ends when it is stopped, not with the context:
// Stop returns after the connection is released, the end of a context before.
func startWatch(ctx context.Context, options metav1.ListOptions, start cache.WatchFuncWithContext) (watch.Interface, error) {
	requestCtx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	release := context.AfterFunc(ctx, cancel)
	w, err := start(requestCtx, options)
	if !release() || err != nil {
		cancel()
		return w, err
	}
	return &detachedWatch{Interface: w, cancel: cancel}, nil
}

// detachedWatch is a watch with a request that outlives its context.
type detachedWatch struct {
	watch.Interface
	cancel context.CancelFunc // of the request
}

// Stop implements watch.Interface.
func (w *detachedWatch) Stop() {
	w.Interface.Stop()
	w.cancel()
}
