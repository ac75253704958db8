// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"context"
	"fmt"
	"net/http"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/gentype"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/rollcall-dev/rollcall/pkg/inventory"
)

const (
	profileResource  = "clusterprofiles"
	decisionResource = "placementdecisions"
)

// versionV1alpha2 has the JSON of v1alpha1 without status.credentialProviders, and is
// read into the types of v1alpha1.
var versionV1alpha2 = schema.GroupVersion{Group: v1alpha1.GroupVersion.Group, Version: "v1alpha2"}

// apiVersions are the versions of the API that can be read. The first one that the hub
// serves is read.
var apiVersions = []schema.GroupVersion{v1alpha1.GroupVersion, versionV1alpha2}

// apiClient reads a resource in one version of its API.
type apiClient struct {
	version string
	list    cache.ListWithContextFunc
	watch   cache.WatchFuncWithContext
}

// profileClients returns a client for each version, the preferred one first.
func (s *Source) profileClients(namespace string) []apiClient {
	first := s.client.ApisV1alpha1().ClusterProfiles(namespace)
	clients := []apiClient{{v1alpha1.Version, lister(first.List), first.Watch}}
	if s.v1alpha2 != nil {
		clients = append(clients, newV1alpha2Client[inventory.Profile, v1alpha1.ClusterProfileList](s.v1alpha2, profileResource, namespace))
	}
	return clients
}

// decisionClients returns a client for each version, the preferred one first.
func (s *Source) decisionClients(namespace string) []apiClient {
	first := s.client.ApisV1alpha1().PlacementDecisions(namespace)
	clients := []apiClient{{v1alpha1.Version, lister(first.List), first.Watch}}
	if s.v1alpha2 != nil {
		clients = append(clients, newV1alpha2Client[v1alpha1.PlacementDecision, v1alpha1.PlacementDecisionList](s.v1alpha2, decisionResource, namespace))
	}
	return clients
}

func lister[L runtime.Object](list func(context.Context, metav1.ListOptions) (L, error)) cache.ListWithContextFunc {
	return func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		return list(ctx, options)
	}
}

// v1alpha2Scheme has the types of v1alpha1 as those of v1alpha2.
var v1alpha2Scheme = func() *runtime.Scheme {
	scheme := runtime.NewScheme()
	scheme.AddKnownTypes(versionV1alpha2,
		&v1alpha1.ClusterProfile{}, &v1alpha1.ClusterProfileList{},
		&v1alpha1.PlacementDecision{}, &v1alpha1.PlacementDecisionList{})
	metav1.AddToGroupVersion(scheme, versionV1alpha2)
	return scheme
}()

func newV1alpha2RESTClient(config *rest.Config, client *http.Client) (rest.Interface, error) {
	config = rest.CopyConfig(config)
	config.GroupVersion, config.APIPath = &versionV1alpha2, "/apis"
	config.NegotiatedSerializer = serializer.NewCodecFactory(v1alpha2Scheme).WithoutConversion()
	return rest.RESTClientForConfigAndClient(config, client)
}

func newV1alpha2Client[T, L any, PT interface {
	*T
	runtime.Object
	metav1.Object
}, PL interface {
	*L
	runtime.Object
}](client rest.Interface, resource, namespace string) apiClient {
	c := gentype.NewClientWithList(resource, client, runtime.NewParameterCodec(v1alpha2Scheme), namespace,
		func() PT { return new(T) }, func() PL { return new(L) })
	return apiClient{versionV1alpha2.Version, lister(c.List), c.Watch}
}

// versionLog logs changes of the version in which a resource is read, once for all of
// its informers.
type versionLog struct {
	resource string

	mu      sync.Mutex // guards current
	current string     // the preferred version before the first list
}

func newVersionLog(resource string) *versionLog {
	return &versionLog{resource: resource, current: apiVersions[0].Version}
}

// observe takes the version of a list.
func (l *versionLog) observe(ctx context.Context, version string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if version != l.current {
		log.FromContext(ctx).Info("The hub serves another version of the API, reading that", "resource", l.resource, "version", version, "before", l.current)
		l.current = version
	}
}

// versionedClient reads a resource in the preferred version that the hub serves. As a
// hub ends the watches of a resource when its versions change, each list, and each
// watch that follows one that was cut, looks for the preferred version. It is used
// from one goroutine at a time.
type versionedClient struct {
	clients []apiClient
	log     *versionLog // nil for a resource with one version

	current int // client of the last list, also of one object
	listed  int // client of the last complete list, whose objects are in the cache
}

// list lists in the first version that is served.
func (c *versionedClient) list(ctx context.Context, options metav1.ListOptions) (list runtime.Object, err error) {
	err = c.first(ctx, func(client apiClient) error {
		list, err = client.list(ctx, options)
		return err
	})
	return list, err
}

// first calls a function for the clients until one does not return 404.
func (c *versionedClient) first(ctx context.Context, request func(apiClient) error) (err error) {
	for i, client := range c.clients {
		err = request(client)
		if err == nil {
			c.current = i
			if c.log != nil {
				c.log.observe(ctx, client.version)
			}
		}
		if !apierrors.IsNotFound(err) {
			return err
		}
	}
	return err
}

// listAll is list for the cache. The pages of a list are of one version, or the next
// watch requires a new list.
func (c *versionedClient) listAll(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	list, err := c.list(ctx, options)
	if err == nil && options.Continue == "" {
		c.listed = c.current
	}
	return list, err
}

// watchAll watches in the version of the objects in the cache. If that is not served,
// or a preferred one is, the error is that the objects must be listed again.
func (c *versionedClient) watchAll(ctx context.Context, options metav1.ListOptions) (w watch.Interface, err error) {
	if options.SendInitialEvents != nil && *options.SendInitialEvents { // a list
		err = c.first(ctx, func(client apiClient) error {
			w, err = startWatch(ctx, options, client.watch)
			return err
		})
		if err == nil {
			c.listed = c.current
		}
		return w, err
	}
	if c.current == c.listed {
		w, err = startWatch(ctx, options, c.clients[c.listed].watch)
		if !apierrors.IsNotFound(err) {
			return w, err
		}
	}
	return nil, apierrors.NewResourceExpired(fmt.Sprintf("the hub no longer serves the version %s of the API, or a preferred one", c.clients[c.listed].version))
}

// setVersion sets the version that the API server sets in some answers only.
func setVersion(profile *inventory.Profile) {
	profile.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.ClusterProfileKind))
}
