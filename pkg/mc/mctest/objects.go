// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package mctest

import (
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metainternal "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/rollcall-dev/rollcall/pkg/mc/mctest/internal/apiserver"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest/internal/store"
)

// fieldManager is the field manager of writes without HTTP.
const fieldManager = "mctest"

// Create creates objects, in order, and updates them with what the server has
// set. It stops at the first error, which is one of k8s.io/apimachinery's API
// errors.
//
// Create and the other methods for objects do the same as the request, without
// HTTP: no fault affects them, and they are not counted.
func (c *Cluster) Create(objects ...client.Object) error {
	for _, object := range objects {
		err := c.write(object, "", func(t apiserver.Target, u *unstructured.Unstructured) (*store.Record, error) {
			t.Name = ""
			return c.server.Create(t, u, apiserver.WriteOptions{Manager: fieldManager})
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Update replaces an object, except its status if that is a subresource.
func (c *Cluster) Update(object client.Object) error { return c.update(object, "") }

// UpdateStatus replaces the status of an object.
func (c *Cluster) UpdateStatus(object client.Object) error { return c.update(object, "status") }

func (c *Cluster) update(object client.Object, subresource string) error {
	return c.write(object, subresource, func(t apiserver.Target, u *unstructured.Unstructured) (*store.Record, error) {
		return c.server.Update(t, u, apiserver.WriteOptions{Manager: fieldManager})
	})
}

// Delete removes an object, or marks it as terminating if it has finalizers. Only
// the object's kind, namespace and name matter.
func (c *Cluster) Delete(object client.Object) error {
	t, err := c.target(object)
	if err != nil {
		return err
	}
	_, _, err = c.server.Delete(t, &metav1.DeleteOptions{})
	return err
}

// Get reads an object.
func (c *Cluster) Get(key client.ObjectKey, object client.Object) error {
	t, err := c.target(object)
	if err != nil {
		return err
	}
	t.Namespace, t.Name = key.Namespace, key.Name
	rec, err := c.server.Get(t)
	if err != nil {
		return err
	}
	return c.read(t, rec, object)
}

// List reads objects. Of the options, it uses namespace and selectors.
func (c *Cluster) List(list client.ObjectList, options ...client.ListOption) error {
	gvk, err := apiutil.GVKForObject(list, c.Scheme())
	if err != nil {
		return err
	}
	t, err := c.targetFor(schema.GroupVersionKind{Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind[:len(gvk.Kind)-len("List")]})
	if err != nil {
		return err
	}
	o := (&client.ListOptions{}).ApplyOptions(options)
	t.Namespace = o.Namespace
	page, err := c.server.List(t, &metainternal.ListOptions{LabelSelector: o.LabelSelector, FieldSelector: o.FieldSelector})
	if err != nil {
		return err
	}
	content := unstructured.UnstructuredList{}
	for _, rec := range page.Records() {
		u, err := apiserver.Decode(rec, t.Resource)
		if err != nil {
			return err
		}
		content.Items = append(content.Items, *u)
	}
	if out, ok := list.(*unstructured.UnstructuredList); ok {
		out.Items = content.Items
		return nil
	}
	return runtime.DefaultUnstructuredConverter.FromUnstructured(content.UnstructuredContent(), list)
}

// write calls a function with the object in the form that the server takes, and
// updates the object with the result.
func (c *Cluster) write(object client.Object, subresource string, do func(apiserver.Target, *unstructured.Unstructured) (*store.Record, error)) error {
	t, err := c.target(object)
	if err != nil {
		return err
	}
	t.Subresource = subresource
	if subresource == "status" && !t.Resource.Status {
		return apierrors.NewNotFound(t.Resource.GroupResource(), t.Name)
	}
	u := &unstructured.Unstructured{}
	if u.Object, err = runtime.DefaultUnstructuredConverter.ToUnstructured(object); err != nil {
		return err
	}
	u.SetGroupVersionKind(t.Resource.GroupVersionKind)
	rec, err := do(t, u)
	if err != nil {
		return err
	}
	return c.read(t, rec, object)
}

// read decodes a record into an object.
func (c *Cluster) read(t apiserver.Target, rec *store.Record, into client.Object) error {
	u, err := apiserver.Decode(rec, t.Resource)
	if err != nil {
		return err
	}
	if out, ok := into.(*unstructured.Unstructured); ok {
		out.Object = u.Object
		return nil
	}
	return runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, into)
}

func (c *Cluster) target(object client.Object) (apiserver.Target, error) {
	gvk, err := apiutil.GVKForObject(object, c.Scheme())
	if err != nil {
		return apiserver.Target{}, err
	}
	t, err := c.targetFor(gvk)
	t.Namespace, t.Name = object.GetNamespace(), object.GetName()
	return t, err
}

func (c *Cluster) targetFor(gvk schema.GroupVersionKind) (apiserver.Target, error) {
	res := c.server.Lookup(gvk)
	if res == nil {
		return apiserver.Target{}, &meta.NoKindMatchError{GroupKind: gvk.GroupKind(), SearchedVersions: []string{gvk.Version}}
	}
	return apiserver.Target{Resource: res}, nil
}
