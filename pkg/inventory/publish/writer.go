// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
	"sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"github.com/rollcall-dev/rollcall/pkg/inventory"
)

const (
	resource = "clusterprofiles"

	// maxWrites bounds the requests to the hub that are under way.
	maxWrites = 16

	// writeTimeout is the time limit of one request to the hub.
	writeTimeout = 30 * time.Second
)

// versions of the API that can be written, the preferred one first. They have the
// same JSON.
var versions = []string{v1alpha1.GroupVersion.Version, "v1alpha2"}

// writer writes profiles of one namespace.
type writer struct {
	client    rest.Interface
	transport http.RoundTripper // has the connections
	namespace string
	slots     chan struct{}
	dryRun    bool // nothing is stored
	version   atomic.Pointer[string]
}

func newWriter(config *rest.Config, namespace string) (*writer, error) {
	w := &writer{namespace: namespace, slots: make(chan struct{}, maxWrites)}
	w.version.Store(&versions[0])
	config = rest.CopyConfig(config)
	if config.QPS == 0 {
		config.QPS = -1
	}
	config.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	// Idle connections are closed below the config's wrappers, which need not
	// implement utilnet.RoundTripperWrapper.
	config.WrapTransport = transport.Wrappers(func(rt http.RoundTripper) http.RoundTripper {
		w.transport = rt
		return rt
	}, config.WrapTransport)
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	w.client, err = rest.UnversionedRESTClientForConfigAndClient(config, client)
	return w, err
}

func (w *writer) close() { utilnet.CloseIdleConnectionsFor(w.transport) }

// create creates a profile. It fails with AlreadyExists if there is one of the name,
// which server-side apply would change.
func (w *writer) create(ctx context.Context, profile *inventory.Profile) (*inventory.Profile, error) {
	return profileFrom(w.send(ctx, func(version string) (*rest.Request, error) {
		return w.request(w.client.Post(), version, "", map[string]any{
			"metadata": identified(profile, nil), "spec": profile.Spec,
		})
	}))
}

// apply applies metadata and spec to the existing profile with the UID.
func (w *writer) apply(ctx context.Context, profile *inventory.Profile, uid types.UID) (*inventory.Profile, error) {
	return profileFrom(w.send(ctx, func(version string) (*rest.Request, error) {
		return w.request(w.applyRequest(), version, profile.Name, map[string]any{
			"metadata": identified(profile, &uid), "spec": profile.Spec,
		})
	}))
}

// applyStatus applies the status to the existing profile with the UID.
func (w *writer) applyStatus(ctx context.Context, profile *inventory.Profile, uid types.UID) (*inventory.Profile, error) {
	return profileFrom(w.send(ctx, func(version string) (*rest.Request, error) {
		return w.request(w.applyRequest(), version, profile.Name+"/status", map[string]any{
			"metadata": map[string]any{"name": profile.Name, "namespace": w.namespace, "uid": uid},
			"status":   profile.Status,
		})
	}))
}

// profileFrom decodes a response.
func profileFrom(body []byte, err error) (*inventory.Profile, error) {
	if err != nil {
		return nil, err
	}
	profile := &inventory.Profile{}
	if err := json.Unmarshal(body, profile); err != nil {
		return nil, fmt.Errorf("the hub's response is not a ClusterProfile: %w", err)
	}
	profile.ManagedFields = nil
	return profile, nil
}

func (w *writer) applyRequest() *rest.Request {
	return w.client.Patch(types.ApplyYAMLPatchType).Param("force", "true")
}

// identified returns the metadata to write. With a UID, the request fails if there is
// no such profile.
func identified(profile *inventory.Profile, uid *types.UID) map[string]any {
	metadata := map[string]any{"name": profile.Name, "namespace": profile.Namespace, "labels": profile.Labels}
	if len(profile.Annotations) > 0 {
		metadata["annotations"] = profile.Annotations
	}
	if uid != nil {
		metadata["uid"] = *uid
	}
	return metadata
}

// request completes a request with the path of the name in the version, and a body.
func (w *writer) request(request *rest.Request, version, name string, content map[string]any) (*rest.Request, error) {
	content["apiVersion"] = v1alpha1.GroupVersion.Group + "/" + version
	content["kind"] = v1alpha1.ClusterProfileKind
	body, err := json.Marshal(content)
	if err != nil {
		return nil, err
	}
	if w.dryRun {
		request = request.Param("dryRun", metav1.DryRunAll)
	}
	return request.AbsPath(w.path(version, name)).Param("fieldManager", FieldManager).
		SetHeader("Content-Type", contentType(name)).Body(body), nil
}

func contentType(name string) string {
	if name == "" { // a creation
		return runtime.ContentTypeJSON
	}
	return string(types.ApplyYAMLPatchType)
}

func (w *writer) path(version, name string) string {
	path := "/apis/" + v1alpha1.GroupVersion.Group + "/" + version + "/namespaces/" + w.namespace + "/" + resource
	if name != "" {
		path += "/" + name
	}
	return path
}

// remove deletes the profile if it has not changed.
func (w *writer) remove(ctx context.Context, profile *inventory.Profile) error {
	options := &metav1.DeleteOptions{
		TypeMeta:      metav1.TypeMeta{APIVersion: "v1", Kind: "DeleteOptions"},
		Preconditions: &metav1.Preconditions{UID: &profile.UID, ResourceVersion: &profile.ResourceVersion},
	}
	if w.dryRun { // with a body, API servers ignore the parameters of the URL
		options.DryRun = []string{metav1.DryRunAll}
	}
	body, err := json.Marshal(options)
	if err != nil {
		return err
	}
	_, err = w.send(ctx, func(version string) (*rest.Request, error) {
		return w.client.Delete().AbsPath(w.path(version, profile.Name)).
			SetHeader("Content-Type", runtime.ContentTypeJSON).Body(body), nil
	})
	return err
}

// send sends a request in a version of the API that the hub serves.
func (w *writer) send(ctx context.Context, request func(version string) (*rest.Request, error)) ([]byte, error) {
	select {
	case w.slots <- struct{}{}:
		defer func() { <-w.slots }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	version := *w.version.Load()
	body, err := w.sendOnce(ctx, version, request)
	if !apierrors.IsNotFound(err) {
		return body, err
	}
	// The profile, the namespace or the version may be missing.
	served, discoveryErr := w.discover(ctx)
	if discoveryErr != nil || served == version {
		return nil, err
	}
	w.version.Store(&served)
	return w.sendOnce(ctx, served, request)
}

func (w *writer) sendOnce(ctx context.Context, version string, request func(version string) (*rest.Request, error)) ([]byte, error) {
	r, err := request(version)
	if err != nil {
		return nil, err
	}
	result := r.Do(ctx)
	if err := result.Error(); err != nil { // Raw returns no message of the API server
		return nil, err
	}
	return result.Raw()
}

var errNotServed = errors.New("the hub does not serve ClusterProfiles (KEP-4322) in a known version: install its CRD")

// discover returns the preferred version that the hub serves.
func (w *writer) discover(ctx context.Context) (string, error) {
	body, err := w.client.Get().AbsPath("/apis/" + v1alpha1.GroupVersion.Group).Do(ctx).Raw()
	if err != nil {
		return "", err
	}
	group := &metav1.APIGroup{}
	if err := json.Unmarshal(body, group); err != nil {
		return "", err
	}
	for _, version := range versions {
		for _, served := range group.Versions {
			if served.Version == version {
				return version, nil
			}
		}
	}
	return "", errNotServed
}
