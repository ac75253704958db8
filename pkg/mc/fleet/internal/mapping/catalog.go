// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package mapping

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/restmapper"
)

// resources maps the resources of one group version.
type resources struct {
	meta.RESTMapperWithContext

	key key
}

// resourcesOf returns the resources of a group version from the server's list.
func (s *store) resourcesOf(gv schema.GroupVersion, list []metav1.APIResource) *resources {
	list = canonical(list)
	d := newDigest()
	d.add(gv.Group, gv.Version)
	for _, r := range list {
		d.add(r.Name, r.SingularName, r.Kind, strconv.FormatBool(r.Namespaced))
	}
	k := d.key()
	if known := s.resources.get(k); known != nil {
		return known
	}
	mapper := restmapper.NewDiscoveryRESTMapperWithContext([]*restmapper.APIGroupResources{{
		Group: metav1.APIGroup{
			Name:     gv.Group,
			Versions: []metav1.GroupVersionForDiscovery{{GroupVersion: gv.String(), Version: gv.Version}},
		},
		VersionedResources: map[string][]metav1.APIResource{gv.Version: list},
	}})
	return s.resources.add(k, &resources{RESTMapperWithContext: mapper, key: k})
}

// canonical returns the resources without subresources. They are sorted, unless the
// server's order matters.
func canonical(list []metav1.APIResource) []metav1.APIResource {
	list = slices.DeleteFunc(slices.Clone(list), func(r metav1.APIResource) bool {
		return strings.Contains(r.Name, "/")
	})
	if !overlap(list) {
		slices.SortFunc(list, func(a, b metav1.APIResource) int { return cmp.Compare(a.Name, b.Name) })
	}
	return list
}

// overlap reports whether resources have a kind or a name in common, including
// those of their lists. A mapper prefers the last one.
func overlap(list []metav1.APIResource) bool {
	kinds, names := sets.New[string](), sets.New[string]()
	for _, r := range list {
		kind := strings.ToLower(r.Kind)
		own := sets.New(r.Name, cmp.Or(r.SingularName, kind), kind+"list", kind+"lists")
		if kinds.HasAny(kind, kind+"list") || names.HasAny(own.UnsortedList()...) {
			return true
		}
		kinds.Insert(kind, kind+"list")
		names.Insert(own.UnsortedList()...)
	}
	return false
}

// catalog maps all known resources of a cluster.
type catalog struct {
	meta.RESTMapperWithContext
}

// catalogOf returns the catalog of all group versions of the documents.
func (s *store) catalogOf(documents []*document, extra map[schema.GroupVersion]response) *catalog {
	var (
		mapper meta.MultiRESTMapperWithContext
		all    []schema.GroupVersion
	)
	d := newDigest()
	for _, document := range documents {
		for _, g := range document.groups {
			for _, v := range g.versions {
				gv := schema.GroupVersion{Group: g.name, Version: v.name}
				known := cmp.Or(v.resources, extra[gv].resources)
				if known == nil {
					continue
				}
				d.addBytes(known.key[:])
				mapper, all = append(mapper, known), append(all, gv)
			}
		}
	}
	k := d.key()
	if known := s.catalogs.get(k); known != nil {
		return known
	}
	return s.catalogs.add(k, &catalog{prefer(mapper, all)})
}

// prefer returns a mapper that prefers core/v1, and then the order.
func prefer(mapper meta.MultiRESTMapperWithContext, order []schema.GroupVersion) meta.RESTMapperWithContext {
	preferring := &meta.PriorityRESTMapperWithContext{Delegate: mapper}
	for _, gv := range append([]schema.GroupVersion{{Version: "v1"}}, order...) {
		preferring.ResourcePriority = append(preferring.ResourcePriority, gv.WithResource(meta.AnyResource))
		preferring.KindPriority = append(preferring.KindPriority, gv.WithKind(meta.AnyKind))
	}
	return preferring
}
