// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package register

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// requestTimeout limits one request.
const requestTimeout = 20 * time.Second

// Action is what was done with an object.
type Action string

// The actions.
const (
	Created   Action = "created"
	Updated   Action = "updated"
	Unchanged Action = "unchanged"
	Deleted   Action = "deleted"
)

// Change is one object and what was done with it.
type Change struct {
	Cluster   string `json:"cluster"` // "hub" or "member"
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	Action    Action `json:"action"`
}

// String is such as "hub: Secret fleet/fleet.c1 created".
func (c Change) String() string {
	return fmt.Sprintf("%s: %s %s %s", c.Cluster, c.Kind, strings.TrimPrefix(c.Namespace+"/"+c.Name, "/"), c.Action)
}

var scheme = func() *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, rbacv1.AddToScheme, authenticationv1.AddToScheme, v1alpha1.AddToScheme,
	} {
		utilruntime.Must(add(s))
	}
	return s
}()

// mapper knows the kinds, so that no discovery is needed.
var mapper = func() meta.RESTMapper {
	m := meta.NewDefaultRESTMapper(nil)
	for kind, scope := range map[schema.GroupVersionKind]meta.RESTScope{
		corev1.SchemeGroupVersion.WithKind("Namespace"):                   meta.RESTScopeRoot,
		corev1.SchemeGroupVersion.WithKind("Secret"):                      meta.RESTScopeNamespace,
		corev1.SchemeGroupVersion.WithKind("ServiceAccount"):              meta.RESTScopeNamespace,
		rbacv1.SchemeGroupVersion.WithKind("Role"):                        meta.RESTScopeNamespace,
		rbacv1.SchemeGroupVersion.WithKind("RoleBinding"):                 meta.RESTScopeNamespace,
		rbacv1.SchemeGroupVersion.WithKind("ClusterRole"):                 meta.RESTScopeRoot,
		rbacv1.SchemeGroupVersion.WithKind("ClusterRoleBinding"):          meta.RESTScopeRoot,
		authenticationv1.SchemeGroupVersion.WithKind("SelfSubjectReview"): meta.RESTScopeRoot,
		v1alpha1.GroupVersion.WithKind(v1alpha1.ClusterProfileKind):       meta.RESTScopeNamespace,
	} {
		m.Add(kind, scope)
	}
	return m
}()

// cluster is the hub or the member.
type cluster struct {
	client.Client
	config *rest.Config
	name   string // for errors
}

// connect sends no request.
func connect(config *rest.Config, name string) (*cluster, error) {
	config = rest.CopyConfig(config)
	if config.Timeout == 0 {
		config.Timeout = requestTimeout
	}
	shared, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	httpClient := *shared
	// client-go would send the credential to the target of a redirect.
	httpClient.CheckRedirect = func(*http.Request, []*http.Request) error {
		return errors.New("the server sent a redirect, which is not followed")
	}
	c, err := client.New(config, client.Options{Scheme: scheme, Mapper: mapper, HTTPClient: &httpClient})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return &cluster{Client: c, config: config, name: name}, nil
}

// describe returns the object's cluster, kind and name.
func (c *cluster) describe(object client.Object) Change {
	change := Change{Cluster: c.name, Namespace: object.GetNamespace(), Name: object.GetName()}
	if gvk, err := apiutil.GVKForObject(object, scheme); err == nil {
		change.Kind = gvk.Kind
	}
	return change
}

// wrap adds the object to an error.
func (c *cluster) wrap(object client.Object, err error) error {
	change := c.describe(object)
	return fmt.Errorf("%s: %s %s: %w", c.name, change.Kind, strings.TrimPrefix(change.Namespace+"/"+change.Name, "/"), err)
}

// find gets the object, and reports whether it exists and is one of the registration.
// It is an ErrNotOwned if it exists and is not.
func (c *cluster) find(ctx context.Context, r registration, object client.Object) (found bool, err error) {
	err = c.Get(ctx, client.ObjectKeyFromObject(object), object)
	switch {
	case apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, c.wrap(object, err)
	case !r.owns(object):
		owner := "was not created by " + Manager
		if name := object.GetAnnotations()[AnnotationRegistered]; name != "" {
			owner = "is that of " + name + " in another hub or inventory"
		}
		return true, c.wrap(object, fmt.Errorf("%w: it exists and %s: choose another name or namespace", ErrNotOwned, owner))
	}
	return true, nil
}

// apply creates or updates the object, and its status if it is a profile. With dryRun
// the API server validates it only. Objects that are not of the registration are an
// ErrNotOwned.
func (c *cluster) apply(ctx context.Context, r registration, desired client.Object, dryRun bool) (Change, error) {
	change := c.describe(desired)
	config, status, err := configuration(desired)
	if err != nil {
		return change, c.wrap(desired, err)
	}
	current := config.DeepCopy()
	found, err := c.find(ctx, r, current)
	if err != nil {
		return change, err
	}
	if found {
		config.SetUID(current.GetUID()) // never create what was just deleted, or change what replaced it
	}
	applyOptions := []client.ApplyOption{client.FieldOwner(Manager), client.ForceOwnership}
	statusOptions := []client.SubResourceApplyOption{client.FieldOwner(Manager), client.ForceOwnership}
	if dryRun {
		applyOptions = append(applyOptions, client.DryRunAll)
		statusOptions = append(statusOptions, client.DryRunAll)
	}
	if err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(config), applyOptions...); err != nil {
		return change, c.wrap(desired, err)
	}
	change.Action = action(found, current.Object, config.Object)
	if status == nil || dryRun && !found {
		return change, nil
	}
	status.SetUID(config.GetUID())
	if err := c.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(status), statusOptions...); err != nil {
		return change, c.wrap(desired, err)
	}
	change.Action = action(found, current.Object, status.Object)
	return change, nil
}

// configuration returns what is applied, and the status if it is a profile.
func configuration(object client.Object) (config, status *unstructured.Unstructured, err error) {
	gvk, err := apiutil.GVKForObject(object, scheme)
	if err != nil {
		return nil, nil, err
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, nil, err
	}
	config = &unstructured.Unstructured{Object: content}
	config.SetGroupVersionKind(gvk)
	unstructured.RemoveNestedField(config.Object, "metadata", "creationTimestamp")
	if gvk.Group == v1alpha1.Group {
		status = &unstructured.Unstructured{Object: map[string]any{"status": config.Object["status"]}}
		status.SetGroupVersionKind(gvk)
		status.SetNamespace(object.GetNamespace())
		status.SetName(object.GetName())
	}
	delete(config.Object, "status")
	return config, status, nil
}

// action compares an object before and after.
func action(found bool, before, after map[string]any) Action {
	if !found {
		return Created
	}
	clean := func(object map[string]any) map[string]any {
		object = runtime.DeepCopyJSON(object)
		for _, field := range []string{"managedFields", "resourceVersion", "generation"} {
			unstructured.RemoveNestedField(object, "metadata", field)
		}
		return object
	}
	if equality.Semantic.DeepEqual(clean(before), clean(after)) {
		return Unchanged
	}
	return Updated
}

// remove deletes an object that was read, and not one that replaced it. An object that
// does not exist is no error.
func (c *cluster) remove(ctx context.Context, object client.Object) (Change, error) {
	change := c.describe(object)
	change.Action = Deleted
	uid := object.GetUID()
	err := c.Delete(ctx, object, client.Preconditions{UID: &uid}, client.PropagationPolicy(metav1.DeletePropagationBackground))
	if err := client.IgnoreNotFound(err); err != nil {
		return change, c.wrap(object, err)
	}
	return change, nil
}

// clusterID returns the UID of the namespace kube-system, which identifies the cluster
// (KEP-2149).
func (c *cluster) clusterID(ctx context.Context) (string, error) {
	namespace := &corev1.Namespace{}
	if err := c.Get(ctx, client.ObjectKey{Name: metav1.NamespaceSystem}, namespace); err != nil {
		return "", fmt.Errorf("%s %s: reading the namespace kube-system, which identifies the cluster: %w", c.name, c.config.Host, err)
	}
	return string(namespace.UID), nil
}
