// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package resource

import (
	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// aggregated returns the discovery of the core group, or of all others, as one
// document.
func (c *Catalog) aggregated(core bool) *apidiscoveryv2.APIGroupDiscoveryList {
	list := &apidiscoveryv2.APIGroupDiscoveryList{
		TypeMeta: metav1.TypeMeta{Kind: "APIGroupDiscoveryList", APIVersion: apidiscoveryv2.SchemeGroupVersion.String()},
	}
	for _, r := range c.All() {
		if (r.Group == "") != core {
			continue
		}
		if n := len(list.Items); n == 0 || list.Items[n-1].Name != r.Group {
			list.Items = append(list.Items, apidiscoveryv2.APIGroupDiscovery{
				ObjectMeta: metav1.ObjectMeta{Name: r.Group},
			})
		}
		g := &list.Items[len(list.Items)-1]
		if n := len(g.Versions); n == 0 || g.Versions[n-1].Version != r.Version {
			g.Versions = append(g.Versions, apidiscoveryv2.APIVersionDiscovery{
				Version:   r.Version,
				Freshness: apidiscoveryv2.DiscoveryFreshnessCurrent,
			})
		}
		v := &g.Versions[len(g.Versions)-1]
		v.Resources = append(v.Resources, r.discovery())
	}
	return list
}

func (r *Resource) discovery() apidiscoveryv2.APIResourceDiscovery {
	scope := apidiscoveryv2.ScopeCluster
	if r.Namespaced {
		scope = apidiscoveryv2.ScopeNamespace
	}
	d := apidiscoveryv2.APIResourceDiscovery{
		Resource:         r.Plural,
		ResponseKind:     asMeta(r.GroupVersionKind),
		Scope:            scope,
		SingularResource: r.Singular,
		Verbs:            r.Verbs(),
		ShortNames:       r.ShortNames,
		Categories:       r.Categories,
	}
	for _, name := range r.subresources() {
		d.Subresources = append(d.Subresources, apidiscoveryv2.APISubresourceDiscovery{
			Subresource:  name,
			ResponseKind: asMeta(r.subresourceKind(name)),
			Verbs:        SubresourceVerbs(name),
		})
	}
	return d
}

func asMeta(gvk schema.GroupVersionKind) *metav1.GroupVersionKind {
	return &metav1.GroupVersionKind{Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind}
}
