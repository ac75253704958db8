// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package resource

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
)

var (
	metaObject = reflect.TypeFor[metav1.Object]()
	stable     = regexp.MustCompile(`^v\d+$`)
)

// FromScheme returns a catalog of every kind in a scheme that has metadata and a
// list kind. A kind with stable versions is served only in these. A kind of
// Kubernetes (in the scheme builtin) without one is not served, as by a real API
// server by default. Other kinds are namespaced unless clusterScoped names them.
func FromScheme(scheme, builtin *runtime.Scheme, clusterScoped ...schema.GroupKind) *Catalog {
	outside := sets.New(clusterScoped...)
	versions := map[schema.GroupKind][]*Resource{}
	for gvk, goType := range scheme.AllKnownTypes() {
		if !isResource(scheme, gvk, goType) || (builtin.Recognizes(gvk) && !stable.MatchString(gvk.Version)) {
			continue
		}
		versions[gvk.GroupKind()] = append(versions[gvk.GroupKind()], fromGoType(gvk, goType, outside))
	}
	var resources []*Resource
	for _, all := range versions {
		resources = append(resources, served(all)...)
	}
	return newCatalog(nil, resources)
}

func isResource(scheme *runtime.Scheme, gvk schema.GroupVersionKind, goType reflect.Type) bool {
	if gvk.Version == runtime.APIVersionInternal {
		return false
	}
	if builtin[gvk.GroupKind()].virtual {
		return true
	}
	return reflect.PointerTo(goType).Implements(metaObject) &&
		scheme.Recognizes(gvk.GroupVersion().WithKind(gvk.Kind+"List"))
}

func fromGoType(gvk schema.GroupVersionKind, goType reflect.Type, outside sets.Set[schema.GroupKind]) *Resource {
	plural, singular := meta.UnsafeGuessKindToResource(gvk)
	gk := gvk.GroupKind()
	known := builtin[gk]
	hasSpec, hasStatus := hasStruct(goType, "spec"), hasStruct(goType, "status")
	return &Resource{
		GroupVersionKind: gvk,
		Plural:           plural.Resource,
		Singular:         singular.Resource,
		ListKind:         gvk.Kind + "List",
		ShortNames:       known.shortNames,
		Categories:       known.categories,
		Namespaced:       !known.clusterScoped && !outside.Has(gk),
		Status:           hasStatus && !known.virtual,
		Generation:       hasSpec && hasStatus && !known.noGeneration,
		Virtual:          known.virtual,
		SelectableFields: known.fields,
		Subresources:     known.subresources,
	}
}

// hasStruct reports whether a type has a struct under a JSON name.
func hasStruct(t reflect.Type, name string) bool {
	for field := range t.Fields() {
		tag, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		kind := field.Type.Kind()
		if tag == name && (kind == reflect.Struct || kind == reflect.Pointer) {
			return true
		}
	}
	return false
}

// served keeps the stable versions of a kind if there are any.
func served(all []*Resource) []*Resource {
	out := slices.DeleteFunc(slices.Clone(all), func(r *Resource) bool { return !stable.MatchString(r.Version) })
	if len(out) == 0 {
		return all
	}
	return out
}

// FromCustomResourceDefinition returns the resources of a definition, one for
// each served version.
func FromCustomResourceDefinition(crd *apiextensionsv1.CustomResourceDefinition) []*Resource {
	var out []*Resource
	for _, v := range crd.Spec.Versions {
		if !v.Served {
			continue
		}
		r := &Resource{
			GroupVersionKind: schema.GroupVersionKind{Group: crd.Spec.Group, Version: v.Name, Kind: crd.Spec.Names.Kind},
			Plural:           crd.Spec.Names.Plural,
			Singular:         crd.Spec.Names.Singular,
			ListKind:         crd.Spec.Names.ListKind,
			ShortNames:       crd.Spec.Names.ShortNames,
			Categories:       crd.Spec.Names.Categories,
			Namespaced:       crd.Spec.Scope == apiextensionsv1.NamespaceScoped,
			Status:           v.Subresources != nil && v.Subresources.Status != nil,
			Generation:       true,
			Custom:           true,
			Definition:       fmt.Sprintf("%s/%d", crd.UID, crd.Generation),
		}
		for _, field := range v.SelectableFields {
			r.SelectableFields = append(r.SelectableFields, strings.TrimPrefix(field.JSONPath, "."))
		}
		out = append(out, r)
	}
	return out
}
