// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package namespace

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// ErrOutsideNamespace means that an object or a request does not belong to the namespace
// that the cluster consists of. Test for it with errors.Is.
var ErrOutsideNamespace = errors.New("not in the namespace of this cluster")

// scope is the namespace that a cluster consists of.
type scope struct {
	namespace string
	scheme    *runtime.Scheme
	mapper    meta.RESTMapper
}

// kindOf returns the kind of an object, or of the items of a list, and whether it is
// namespaced.
func (s *scope) kindOf(obj runtime.Object) (schema.GroupVersionKind, bool, error) {
	gvk, err := apiutil.GVKForObject(obj, s.scheme)
	if err != nil {
		return gvk, false, err
	}
	if _, isList := obj.(client.ObjectList); isList {
		gvk.Kind = strings.TrimSuffix(gvk.Kind, "List")
	}
	namespaced, err := s.isNamespaced(gvk)
	return gvk, namespaced, err
}

func (s *scope) isNamespaced(gvk schema.GroupVersionKind) (bool, error) {
	namespaced, err := apiutil.IsGVKNamespaced(gvk, s.mapper)
	if err != nil {
		return false, fmt.Errorf("cannot find the scope of %s: %w", gvk.Kind, err)
	}
	return namespaced, nil
}

// own makes an object to be written, or whose subresource is read, one of the namespace.
// The error is that it belongs to another one or is cluster-scoped.
func (s *scope) own(obj client.Object) error {
	gvk, namespaced, err := s.kindOf(obj)
	if err != nil {
		return err
	}
	if !namespaced {
		return s.clusterScoped(gvk.Kind, obj.GetName())
	}
	if err := s.check(gvk.Kind, obj.GetName(), obj.GetNamespace()); err != nil {
		return err
	}
	obj.SetNamespace(s.namespace)
	return nil
}

// body checks the object that is sent to a subresource. It may be nil.
func (s *scope) body(obj client.Object) error {
	if obj == nil {
		return nil
	}
	return s.check(fmt.Sprintf("%T", obj), obj.GetName(), obj.GetNamespace())
}

// check returns an error if the namespace is another one.
func (s *scope) check(kind, name, namespace string) error {
	if namespace == "" || namespace == s.namespace {
		return nil
	}
	return fmt.Errorf("%s %q in namespace %q: %w, %q", kind, name, namespace, ErrOutsideNamespace, s.namespace)
}

func (s *scope) clusterScoped(kind, name string) error {
	return fmt.Errorf("%s %q is cluster-scoped: %w, %q", kind, name, ErrOutsideNamespace, s.namespace)
}

// key returns the key of an object to be read. Cluster-scoped objects can be read.
func (s *scope) key(key client.ObjectKey, obj runtime.Object) (client.ObjectKey, error) {
	gvk, namespaced, err := s.kindOf(obj)
	if err != nil || !namespaced {
		return key, err
	}
	if err := s.check(gvk.Kind, key.Name, key.Namespace); err != nil {
		return key, err
	}
	key.Namespace = s.namespace
	return key, nil
}

// list returns the options to list only objects of the namespace. Cluster-scoped
// objects are listed as they are.
func (s *scope) list(list client.ObjectList, opts []client.ListOption) ([]client.ListOption, error) {
	gvk, namespaced, err := s.kindOf(list)
	if err != nil || !namespaced {
		return opts, err
	}
	options := client.ListOptions{}
	options.ApplyOptions(opts)
	if err := s.check("list of", gvk.Kind, options.Namespace); err != nil {
		return nil, err
	}
	return append(slices.Clip(opts), client.InNamespace(s.namespace)), nil
}
