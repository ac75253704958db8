// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"encoding/json"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured/unstructuredscheme"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/rollcall-dev/rollcall/pkg/mc/mctest/internal/resource"
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

// typeConverter returns how the objects of a resource are merged: by client-go's
// schema for built-in types, and by that of their definition for custom
// resources. Types without a schema are merged by the shape of the data, with
// lists as a whole.
func (s *Server) typeConverter(res *resource.Resource) (managedfields.TypeConverter, error) {
	switch {
	case res.Custom:
		return s.customConverter(res)
	case clientgoscheme.Scheme.Recognizes(res.GroupVersionKind):
		return s.types.converter(), nil
	}
	return managedfields.NewDeducedTypeConverter(), nil
}

func (s *Server) customConverter(res *resource.Resource) (managedfields.TypeConverter, error) {
	s.catalogMu.Lock()
	defer s.catalogMu.Unlock()
	if converter, ok := s.converters[res.GroupVersionKind]; ok {
		return converter, nil
	}
	rec := s.store.Get(crdStorage, "", res.GroupResource().String())
	if rec == nil {
		return nil, errNoSuchPath
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := json.Unmarshal(rec.JSON, crd); err != nil {
		return nil, err
	}
	converter, err := newCustomConverter(crd, res.Version)
	if err != nil {
		return nil, apierrors.NewInternalError(fmt.Errorf("schema of %s: %w", crd.Name, err))
	}
	s.converters[res.GroupVersionKind] = converter
	return converter, nil
}

// metadataSchema describes how the parts of metadata are merged that an applied
// configuration may contain.
const metadataSchema = `{
  "type": "object",
  "properties": {
    "annotations": {"type": "object", "additionalProperties": {"type": "string"}},
    "labels": {"type": "object", "additionalProperties": {"type": "string"}},
    "finalizers": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
    "ownerReferences": {
      "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["uid"],
      "items": {
        "type": "object", "x-kubernetes-map-type": "atomic",
        "properties": {"uid": {"type": "string"}}
      }
    }
  }
}`

// newCustomConverter reads the schema of one version of a definition.
func newCustomConverter(crd *apiextensionsv1.CustomResourceDefinition, version string) (managedfields.TypeConverter, error) {
	for _, v := range crd.Spec.Versions {
		if v.Name != version || v.Schema == nil || v.Schema.OpenAPIV3Schema == nil {
			continue
		}
		raw, err := json.Marshal(v.Schema.OpenAPIV3Schema)
		if err != nil {
			return nil, err
		}
		root, metadata := &spec.Schema{}, &spec.Schema{}
		if err := json.Unmarshal(raw, root); err != nil {
			return nil, err
		}
		if err := json.Unmarshal([]byte(metadataSchema), metadata); err != nil {
			return nil, err
		}
		text := *spec.StringProperty()
		root.Type = spec.StringOrArray{"object"}
		root.SetProperty("apiVersion", text)
		root.SetProperty("kind", text)
		root.SetProperty("metadata", *metadata)
		gvk := schema.GroupVersionKind{Group: crd.Spec.Group, Version: version, Kind: crd.Spec.Names.Kind}
		root.AddExtension("x-kubernetes-group-version-kind", []any{
			map[string]any{"group": gvk.Group, "version": gvk.Version, "kind": gvk.Kind},
		})
		return managedfields.NewTypeConverter(map[string]*spec.Schema{gvk.String(): root}, true)
	}
	return managedfields.NewDeducedTypeConverter(), nil
}
