// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package resource

import (
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

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
		}
		for _, field := range v.SelectableFields {
			r.SelectableFields = append(r.SelectableFields, strings.TrimPrefix(field.JSONPath, "."))
		}
		out = append(out, r)
	}
	return out
}
