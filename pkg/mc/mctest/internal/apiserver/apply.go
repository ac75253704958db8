// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured/unstructuredscheme"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
)

// merged applies a configuration to an object.
func (s *Server) merged(t Target, live, applied *unstructured.Unstructured, manager string, force bool) (*unstructured.Unstructured, error) {
	fields, err := s.fieldManager(t)
	if err != nil {
		return nil, err
	}
	out, err := fields.Apply(live.DeepCopy(), applied.DeepCopy(), manager, force)
	if err != nil {
		return nil, err
	}
	return s.acceptTracked(t, out)
}

// trackUpdate records the field manager of changed fields, for an object that
// was applied at least once.
func (s *Server) trackUpdate(t Target, live, next *unstructured.Unstructured, manager string) error {
	if len(live.GetManagedFields()) == 0 {
		next.SetManagedFields(nil)
		return nil
	}
	fields, err := s.fieldManager(t)
	if err != nil {
		return err
	}
	out, err := s.acceptTracked(t, fields.UpdateNoErrors(live.DeepCopy(), next.DeepCopy(), manager))
	if err != nil {
		return err
	}
	next.SetManagedFields(out.GetManagedFields())
	return nil
}

func (s *Server) acceptTracked(t Target, object runtime.Object) (*unstructured.Unstructured, error) {
	out, ok := object.(*unstructured.Unstructured)
	if !ok {
		return nil, apierrors.NewInternalError(fmt.Errorf("field manager returned a %T", object))
	}
	return out, s.accept(out, t.Resource)
}

// fieldManager merges by the schema of the type.
func (s *Server) fieldManager(t Target) (*managedfields.FieldManager, error) {
	converter, err := s.typeConverter(t.Resource)
	if err != nil {
		return nil, err
	}
	return managedfields.NewDefaultCRDFieldManager(converter, sameVersion{s.types.scheme},
		unstructuredscheme.NewUnstructuredDefaulter(), unstructuredscheme.NewUnstructuredCreator(),
		t.Resource.GroupVersionKind, t.Resource.GroupVersion(), t.Subresource, nil)
}

// sameVersion converts between versions of a kind that differ only in name. The
// field manager calls no other method of the convertor.
type sameVersion struct{ runtime.ObjectConvertor }

// ConvertToVersion implements runtime.ObjectConvertor.
func (sameVersion) ConvertToVersion(in runtime.Object, target runtime.GroupVersioner) (runtime.Object, error) {
	object, ok := in.(*unstructured.Unstructured)
	if !ok {
		return in, nil
	}
	gvk, ok := target.KindForGroupVersionKinds([]schema.GroupVersionKind{object.GroupVersionKind()})
	if ok && gvk != object.GroupVersionKind() {
		object = object.DeepCopy()
		object.SetGroupVersionKind(gvk)
	}
	return object, nil
}
