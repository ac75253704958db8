// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Package resource says which resources a test API server has: those of the
// Go types in a scheme, and those of CustomResourceDefinitions. From that it
// also writes the discovery documents.
package resource

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A Resource is one resource in one version. It is immutable.
type Resource struct {
	schema.GroupVersionKind
	Plural     string
	Singular   string
	ListKind   string
	ShortNames []string
	Categories []string
	Namespaced bool
	// Status says that the status is written through a subresource.
	Status bool
	// Generation says that metadata.generation counts changes.
	Generation bool
	// Virtual says that objects are answered rather than stored, as reviews
	// are.
	Virtual bool
	// Custom says that it comes from a CustomResourceDefinition, so that
	// there is no Go type.
	Custom bool
	// SelectableFields may be used in field selectors besides name and
	// namespace, in the form "spec.nodeName".
	SelectableFields []string
	// Subresources other than status, with the kind that each takes.
	Subresources map[string]schema.GroupVersionKind
}

// GroupResource names the resource without its version.
func (r *Resource) GroupResource() schema.GroupResource {
	return schema.GroupResource{Group: r.Group, Resource: r.Plural}
}

// GroupVersionResource names the resource.
func (r *Resource) GroupVersionResource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: r.Group, Version: r.Version, Resource: r.Plural}
}

// Storage is the resource under which objects are kept. It is the resource
// itself but for events, of which both API groups show the same objects.
func (r *Resource) Storage() schema.GroupResource {
	if r.Group == "events.k8s.io" && r.Plural == "events" {
		return schema.GroupResource{Resource: "events"}
	}
	return r.GroupResource()
}

// Verbs are those that the resource serves.
func (r *Resource) Verbs() []string {
	switch {
	case r.Virtual:
		return []string{"create"}
	case r.Group == "" && r.Kind == "Namespace":
		return []string{"create", "delete", "get", "list", "patch", "update", "watch"}
	case r.Group == "" && r.Kind == "ComponentStatus":
		return []string{"get", "list"}
	}
	return []string{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}
}

// subresources names all subresources, status included, sorted.
func (r *Resource) subresources() []string {
	names := make([]string, 0, len(r.Subresources)+1)
	if r.Status {
		names = append(names, "status")
	}
	for name := range r.Subresources {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
