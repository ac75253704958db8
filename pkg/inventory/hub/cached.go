// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"context"
	"fmt"
	"math"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/rollcall-dev/rollcall/pkg/inventory"
)

// slowSync is how long the cache may take to sync before that is logged.
const slowSync = 30 * time.Second

// retryBackoff is that of client-go's reflector.
var retryBackoff = wait.Backoff{Duration: 800 * time.Millisecond, Cap: 30 * time.Second, Steps: math.MaxInt32, Factor: 2, Jitter: 1}

// usesCache reports whether profiles are read from Options.Cache.
func (o *Options) usesCache() bool {
	return o.Cache != nil && o.Namespace == "" && len(o.Namespaces) == 0 && o.LabelSelector == nil && o.FieldSelector == nil
}

// readCachedProfiles reads the profiles of Options.Cache until the context ends.
func (r *reader) readCachedProfiles(ctx context.Context, v *view, outages *outages) {
	v.unreadProfiles[""] = true
	r.running.Go(func() {
		informer, registration := r.handleCachedProfiles(ctx, outages)
		if registration == nil {
			return
		}
		defer func() {
			if err := informer.RemoveEventHandler(registration); err != nil {
				log.FromContext(ctx).Error(err, "Cannot remove the event handler from the cache")
			}
		}()
		if waitForSync(ctx, registration) {
			r.send(ctx, func(v *view) { v.profilesRead("", time.Now()) })
			<-ctx.Done()
		}
	})
}

// handleCachedProfiles adds an event handler to the cache's informer. It retries
// until the context ends, when it returns nil.
func (r *reader) handleCachedProfiles(ctx context.Context, outages *outages) (ctrlcache.Informer, cache.ResourceEventHandlerRegistration) {
	what := target{resource: "ClusterProfiles", kep: "KEP-4322"}
	backoff := retryBackoff
	for {
		informer, err := profileInformer(ctx, r.source.options.Cache)
		if err == nil {
			var registration cache.ResourceEventHandlerRegistration
			if registration, err = informer.AddEventHandler(r.cacheHandler(ctx)); err == nil {
				outages.observe(ctx, what, nil)
				return informer, registration
			}
		}
		outages.observe(ctx, what, err)
		select {
		case <-time.After(backoff.Step()):
		case <-ctx.Done():
			return nil, nil
		}
	}
}

// profileInformer returns the cache's informer of profiles. It does not wait for
// it to sync, nor, after the context has ended, for the cache's discovery, which
// ignores the context.
func profileInformer(ctx context.Context, informers ctrlcache.Informers) (ctrlcache.Informer, error) {
	type result struct {
		informer ctrlcache.Informer
		err      error
	}
	found := make(chan result, 1)
	go func() {
		informer, err := informers.GetInformer(ctx, &inventory.Profile{}, ctrlcache.BlockUntilSynced(false))
		if runtime.IsNotRegisteredError(err) {
			untyped := &unstructured.Unstructured{}
			untyped.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.ClusterProfileKind))
			informer, err = informers.GetInformer(ctx, untyped, ctrlcache.BlockUntilSynced(false))
		}
		found <- result{informer, err}
	}()
	select {
	case r := <-found:
		return r.informer, r.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// waitForSync returns when the handler has received the first list. It reports
// false if the context has ended before.
func waitForSync(ctx context.Context, registration cache.ResourceEventHandlerRegistration) bool {
	slow := time.NewTimer(slowSync)
	defer slow.Stop()
	for {
		select {
		case <-registration.HasSyncedChecker().Done():
			return true
		case <-ctx.Done():
			return false
		case <-slow.C:
			log.FromContext(ctx).Info("Still waiting for the manager's cache of ClusterProfiles: is it allowed to list and watch them in its scope?")
		}
	}
}

// cacheHandler sends the loop the profiles of the cache.
func (r *reader) cacheHandler(ctx context.Context) cache.ResourceEventHandler {
	put := func(object any) {
		profile, err := profileOf(object)
		if err != nil {
			log.FromContext(ctx).Error(err, "Cannot read an object of the cache, ignoring it")
			return
		}
		r.send(ctx, func(v *view) { v.putProfile(profile) })
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc: put,
		UpdateFunc: func(old, object any) {
			if !sameVersion(old, object) { // not a resync
				put(object)
			}
		},
		DeleteFunc: func(object any) {
			if key, err := cache.DeletionHandlingObjectToName(object); err == nil {
				r.send(ctx, func(v *view) { v.removeProfile(inventory.Key{Namespace: key.Namespace, Name: key.Name}) })
			}
		},
	}
}

func sameVersion(a, b any) bool {
	objectA, okA := a.(client.Object)
	objectB, okB := b.(client.Object)
	return okA && okB && objectA.GetResourceVersion() != "" && objectA.GetResourceVersion() == objectB.GetResourceVersion()
}

// profileOf returns a copy of a profile of the cache, which belongs to others too.
func profileOf(object any) (*inventory.Profile, error) {
	var profile *inventory.Profile
	switch object := object.(type) {
	case *inventory.Profile:
		profile = object.DeepCopy()
	case *unstructured.Unstructured:
		profile = &inventory.Profile{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.DeepCopy().Object, profile); err != nil {
			return nil, fmt.Errorf("ClusterProfile %s/%s: %w", object.GetNamespace(), object.GetName(), err)
		}
	default:
		return nil, fmt.Errorf("not a ClusterProfile, but a %T", object)
	}
	profile.ManagedFields = nil
	return profile, nil
}
