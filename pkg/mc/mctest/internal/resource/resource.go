// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Package resource lists the resources of a test API server: those of the Go
// types in a scheme, and those of CustomResourceDefinitions. It also writes the
// discovery documents.
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
	// Status is whether the status is a subresource.
	Status bool
	// Generation is whether metadata.generation counts changes.
	Generation bool
	// Virtual is whether objects are answered instead of stored, such as
	// reviews.
	Virtual bool
	// Custom is whether it comes from a CustomResourceDefinition, and has no
	// Go type.
	Custom bool
	// Definition identifies the state of the CustomResourceDefinition, if any.
	Definition string
	// SelectableFields may be used in field selectors besides name and
	// namespace, in the form "spec.nodeName".
	SelectableFields []string
	// Subresources other than status, with the kind that each accepts.
	Subresources map[string]schema.GroupVersionKind
}

// GroupResource returns the name without the version.
func (r *Resource) GroupResource() schema.GroupResource {
	return schema.GroupResource{Group: r.Group, Resource: r.Plural}
}

// GroupVersionResource returns the full name.
func (r *Resource) GroupVersionResource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: r.Group, Version: r.Version, Resource: r.Plural}
}

// Storage is the resource under which objects are stored. It is the resource
// itself, except for events: both API groups serve the same objects.
func (r *Resource) Storage() schema.GroupResource {
	if r.Group == "events.k8s.io" && r.Plural == "events" {
		return schema.GroupResource{Resource: "events"}
	}
	return r.GroupResource()
}

// Verbs returns the verbs of the resource.
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

// subresources returns the sorted names of all subresources, status included.
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
