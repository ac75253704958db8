// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package resource

import (
	"encoding/json"
	"strings"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
)

type documentKey struct {
	path       string
	aggregated bool
}

// Document returns the discovery document at a path (/api, /apis or one below
// them), in JSON, or nil if there is none. Only /api and /apis have an
// aggregated form.
func (c *Catalog) Document(path string, aggregated bool) ([]byte, error) {
	key := documentKey{path, aggregated}
	if c.documents == nil {
		return c.write(key)
	}
	if raw, ok := c.documents.Load(key); ok {
		return raw.([]byte), nil
	}
	raw, err := c.write(key)
	if err == nil && raw != nil {
		c.documents.Store(key, raw)
	}
	return raw, err
}

func (c *Catalog) write(key documentKey) ([]byte, error) {
	core := key.path == "/api"
	switch {
	case key.aggregated:
		return json.Marshal(c.aggregated(core))
	case core:
		return json.Marshal(&metav1.APIVersions{
			TypeMeta:                   metav1.TypeMeta{Kind: "APIVersions"},
			Versions:                   []string{"v1"},
			ServerAddressByClientCIDRs: []metav1.ServerAddressByClientCIDR{},
		})
	case key.path == "/api/v1":
		return c.writeVersion(key, schema.GroupVersion{Version: "v1"})
	}
	if rest, ok := strings.CutPrefix(key.path, "/apis/"); ok {
		if group, version, ok := strings.Cut(rest, "/"); ok {
			return c.writeVersion(key, schema.GroupVersion{Group: group, Version: version})
		}
	}
	list, _, _ := discovery.SplitGroupsAndResources(*c.aggregated(false))
	if key.path == "/apis" {
		list.TypeMeta = metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}
		return json.Marshal(list)
	}
	for _, g := range list.Groups {
		if key.path == "/apis/"+g.Name {
			g.TypeMeta = metav1.TypeMeta{Kind: "APIGroup", APIVersion: "v1"}
			return json.Marshal(g)
		}
	}
	return nil, nil
}

// touches reports whether the catalog itself, not its base, has a resource in a
// group version.
func (c *Catalog) touches(gv schema.GroupVersion) bool {
	for gvr := range c.own {
		if gvr.GroupVersion() == gv {
			return true
		}
	}
	return false
}

func (c *Catalog) writeVersion(key documentKey, gv schema.GroupVersion) ([]byte, error) {
	if c.base != nil && !c.touches(gv) {
		return c.base.Document(key.path, false)
	}
	_, lists, _ := discovery.SplitGroupsAndResources(*c.aggregated(gv.Group == ""))
	list := lists[gv]
	if list == nil {
		return nil, nil
	}
	list.TypeMeta = metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}
	for i := range list.APIResources {
		r := &list.APIResources[i]
		if strings.Contains(r.Name, "/") {
			r.SingularName = ""
		}
		if r.Group == gv.Group && r.Version == gv.Version {
			r.Group, r.Version = "", ""
		}
	}
	return json.Marshal(list)
}

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

func (r *Resource) subresourceKind(name string) schema.GroupVersionKind {
	if kind, ok := r.Subresources[name]; ok {
		return kind
	}
	return r.GroupVersionKind
}

// SubresourceVerbs returns the verbs of a subresource.
func SubresourceVerbs(name string) []string {
	switch name {
	case "token":
		return []string{"create"}
	case "finalize":
		return []string{"update"}
	default:
		return []string{"get", "patch", "update"}
	}
}
