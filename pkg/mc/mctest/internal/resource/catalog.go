// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package resource

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
)

// Catalog is the set of resources of a server. It is immutable, and may be shared
// by servers.
type Catalog struct {
	base  *Catalog // nil for the resources of a scheme
	own   map[schema.GroupVersionResource]*Resource
	kinds map[schema.GroupVersionKind]*Resource

	// documents caches discovery documents. It is nil with custom resources:
	// a thousand clusters with the same ones would hold a thousand copies.
	documents *sync.Map // documentKey → []byte
}

func newCatalog(base *Catalog, resources []*Resource) *Catalog {
	c := &Catalog{
		base:  base,
		own:   make(map[schema.GroupVersionResource]*Resource, len(resources)),
		kinds: make(map[schema.GroupVersionKind]*Resource, len(resources)),
	}
	for _, r := range resources {
		c.own[r.GroupVersionResource()] = r
		c.kinds[r.GroupVersionKind] = r
	}
	if base == nil {
		c.documents = &sync.Map{}
	}
	return c
}

// With adds resources to those of the catalog. They take precedence.
func (c *Catalog) With(resources []*Resource) *Catalog {
	if len(resources) == 0 {
		return c
	}
	return newCatalog(c, resources)
}

// Find returns a resource, or nil.
func (c *Catalog) Find(gvr schema.GroupVersionResource) *Resource {
	if r := c.own[gvr]; r != nil || c.base == nil {
		return r
	}
	return c.base.Find(gvr)
}

// FindKind returns the resource that serves a kind, or nil.
func (c *Catalog) FindKind(gvk schema.GroupVersionKind) *Resource {
	if r := c.kinds[gvk]; r != nil || c.base == nil {
		return r
	}
	return c.base.FindKind(gvk)
}

// Serving returns the preferred version of a resource, or nil.
func (c *Catalog) Serving(gr schema.GroupResource) *Resource {
	var best *Resource
	for _, r := range c.All() {
		if r.GroupResource() == gr && (best == nil || version.CompareKubeAwareVersionStrings(r.Version, best.Version) > 0) {
			best = r
		}
	}
	return best
}

// All returns all resources: the core group first, then by group, preferred
// version and name.
func (c *Catalog) All() []*Resource {
	set := map[schema.GroupVersionResource]*Resource{}
	c.collect(set)
	return slices.SortedFunc(maps.Values(set), func(a, b *Resource) int {
		return cmp.Or(
			cmp.Compare(a.Group, b.Group),
			version.CompareKubeAwareVersionStrings(b.Version, a.Version),
			cmp.Compare(a.Plural, b.Plural),
		)
	})
}

func (c *Catalog) collect(set map[schema.GroupVersionResource]*Resource) {
	if c.base != nil {
		c.base.collect(set)
	}
	maps.Copy(set, c.own)
}
