// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/rollcall-dev/rollcall/pkg/inventory"
)

const (
	// slowSync is how long the cache may take to sync before that is logged.
	slowSync = 30 * time.Second

	// versionPoll is how often discovery is asked for the version to read, with jitter.
	versionPoll = 15 * time.Second

	// askTimeout limits that and other questions beside the cache.
	askTimeout = 10 * time.Second
)

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
		version := apiVersions[0]
		for ctx.Err() == nil {
			version = r.readCachedVersion(ctx, version, outages)
		}
	})
}

// readCachedVersion reads the profiles from the cache's informer of the preferred
// version that the hub serves. It returns the version that it has read when the hub
// serves another one, or the context has ended.
//
// The cache does not report that a version is no longer served, so discovery is asked
// from time to time. The informer stays in the cache, as it may have other users: it
// keeps asking for its version, with the backoff of client-go, until that is served.
func (r *reader) readCachedVersion(ctx context.Context, version schema.GroupVersion, outages *outages) schema.GroupVersion {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // events that are still on their way are ignored
	r.send(ctx, func(v *view) { v.beginHandover() })
	version, informer, registration := r.handleCachedProfiles(ctx, version, outages)
	if registration == nil {
		return version
	}
	defer func() {
		cancel()
		if err := informer.RemoveEventHandler(registration); err != nil {
			log.FromContext(ctx).Error(err, "Cannot remove the event handler from the cache")
		}
	}()
	r.profileVersion.observe(ctx, version.Version)
	r.logScope(ctx, informer)

	slow := time.NewTimer(slowSync)
	defer slow.Stop()
	poll := time.NewTimer(wait.Jitter(versionPoll, 0.2))
	defer poll.Stop()
	synced := registration.HasSyncedChecker().Done()
	for {
		select {
		case <-ctx.Done():
			return version
		case <-synced:
			synced = nil
			r.send(ctx, func(v *view) { v.profilesRead("", time.Now()) })
			r.settle(ctx, version)
		case <-slow.C:
			if synced != nil {
				log.FromContext(ctx).Info("Still waiting for the manager's cache of ClusterProfiles: is it allowed to list and watch them in its scope?")
			}
		case <-poll.C:
			if r.source.servedVersion(ctx, profileResource, version) != version {
				return version
			}
			if synced == nil {
				r.settle(ctx, version)
			}
			poll.Reset(wait.Jitter(versionPoll, 0.2))
		}
	}
}

// settle compares profiles with the hub of which the informer of another version
// cannot decide; see view.beginHandover.
func (r *reader) settle(ctx context.Context, version schema.GroupVersion) {
	found := make(chan map[string]bool, 1)
	r.send(ctx, func(v *view) { found <- v.unsettled() })
	var namespaces map[string]bool
	select {
	case namespaces = <-found:
	case <-ctx.Done():
		return
	}
	for namespace := range namespaces {
		listCtx, cancel := context.WithTimeout(ctx, askTimeout)
		list, err := r.source.metadata.Resource(version.WithResource(profileResource)).Namespace(namespace).List(listCtx, metav1.ListOptions{})
		cancel()
		if err != nil {
			log.FromContext(ctx).V(1).Info("Cannot compare the cache with the hub, keeping the clusters as they are", "namespace", namespace, "error", err.Error())
			continue
		}
		versions := make(map[string]string, len(list.Items))
		for i := range list.Items {
			versions[list.Items[i].Name] = list.Items[i].ResourceVersion
		}
		r.send(ctx, func(v *view) { v.settle(namespace, versions) })
	}
}

// logScope logs once that the cache is not limited to namespaces, which is then the
// informer of a single cache.
func (r *reader) logScope(ctx context.Context, informer ctrlcache.Informer) {
	if _, all := informer.(cache.SharedIndexInformer); all && !r.scopeLogged {
		r.scopeLogged = true
		log.FromContext(ctx).Info("Reading the ClusterProfiles of all namespaces, as the manager's cache is not limited to some; " +
			"to read only some, set DefaultNamespaces or ByObject in the manager's cache options, or Namespaces of the provider")
	}
}

// servedVersion returns the preferred version in which the hub serves the resource. If
// there is none, or that cannot be found out, it returns the current one.
func (s *Source) servedVersion(ctx context.Context, resource string, current schema.GroupVersion) schema.GroupVersion {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	discover := discovery.ToDiscoveryInterfaceWithContext(s.client.Discovery())
	for _, version := range apiVersions {
		list, err := discover.ServerResourcesForGroupVersionWithContext(ctx, version.String())
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return current
		}
		if slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == resource }) {
			return version
		}
	}
	return current
}

// handleCachedProfiles adds an event handler to the cache's informer of the served
// version. It retries until the context ends, when it returns nil.
func (r *reader) handleCachedProfiles(ctx context.Context, version schema.GroupVersion, outages *outages) (schema.GroupVersion, ctrlcache.Informer, cache.ResourceEventHandlerRegistration) {
	what := target{resource: "ClusterProfiles", kep: "KEP-4322"}
	backoff := retryBackoff
	for {
		version = r.source.servedVersion(ctx, profileResource, version)
		informer, err := profileInformer(ctx, r.source.options.Cache, version)
		if err == nil {
			var registration cache.ResourceEventHandlerRegistration
			if registration, err = informer.AddEventHandler(r.cacheHandler(ctx)); err == nil {
				outages.observe(ctx, what, nil)
				return version, informer, registration
			}
		}
		outages.observe(ctx, what, err)
		select {
		case <-time.After(backoff.Step()):
		case <-ctx.Done():
			return version, nil, nil
		}
	}
}

// profileInformer returns the cache's informer of profiles in the version: typed if the
// cache knows the type of v1alpha1, otherwise unstructured. It does not wait for it to
// sync, nor, after the context has ended, for the cache's discovery, which ignores the
// context.
func profileInformer(ctx context.Context, informers ctrlcache.Informers, version schema.GroupVersion) (ctrlcache.Informer, error) {
	type result struct {
		informer ctrlcache.Informer
		err      error
	}
	found := make(chan result, 1)
	go func() {
		var typed client.Object = &inventory.Profile{}
		untyped := &unstructured.Unstructured{}
		untyped.SetGroupVersionKind(version.WithKind(v1alpha1.ClusterProfileKind))
		if version != v1alpha1.GroupVersion {
			typed = untyped
		}
		informer, err := informers.GetInformer(ctx, typed, ctrlcache.BlockUntilSynced(false))
		if runtime.IsNotRegisteredError(err) {
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

// cacheHandler sends the loop the profiles of the cache. Events after the context has
// ended are ignored, as the cache may send some after the handler was removed.
func (r *reader) cacheHandler(ctx context.Context) cache.ResourceEventHandler {
	send := func(event func(*view)) {
		r.send(ctx, func(v *view) {
			if ctx.Err() == nil {
				event(v)
			}
		})
	}
	put := func(object any, listed bool) {
		profile, err := profileOf(object)
		if err != nil {
			log.FromContext(ctx).Error(err, "Cannot read an object of the cache, ignoring it")
			return
		}
		send(func(v *view) {
			if listed {
				v.putListed(profile)
			} else {
				v.putProfile(profile)
			}
		})
	}
	return cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: put,
		UpdateFunc: func(old, object any) {
			if !sameVersion(old, object) { // not a resync
				put(object, false)
			}
		},
		DeleteFunc: func(object any) {
			if key, err := cache.DeletionHandlingObjectToName(object); err == nil {
				send(func(v *view) { v.removeProfile(inventory.Key{Namespace: key.Namespace, Name: key.Name}) })
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
	setVersion(profile)
	return profile, nil
}
