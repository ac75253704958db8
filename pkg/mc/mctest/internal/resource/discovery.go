// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package resource

import (
	"encoding/json"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
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
	switch key.path {
	case "/api":
		if key.aggregated {
			return json.Marshal(c.aggregated(true))
		}
		return json.Marshal(&metav1.APIVersions{
			TypeMeta:                   metav1.TypeMeta{Kind: "APIVersions"},
			Versions:                   []string{"v1"},
			ServerAddressByClientCIDRs: []metav1.ServerAddressByClientCIDR{},
		})
	case "/apis":
		if key.aggregated {
			return json.Marshal(c.aggregated(false))
		}
		list := &metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}}
		for _, g := range c.groups() {
			if g.Name != "" {
				list.Groups = append(list.Groups, *g)
			}
		}
		return json.Marshal(list)
	case "/api/v1":
		return c.writeVersion(schema.GroupVersion{Version: "v1"})
	}
	rest, ok := strings.CutPrefix(key.path, "/apis/")
	if !ok {
		return nil, nil
	}
	group, version, ok := strings.Cut(rest, "/")
	if ok {
		return c.writeVersion(schema.GroupVersion{Group: group, Version: version})
	}
	for _, g := range c.groups() {
		if g.Name == group {
			g.TypeMeta = metav1.TypeMeta{Kind: "APIGroup", APIVersion: "v1"}
			return json.Marshal(g)
		}
	}
	return nil, nil
}

// groups lists the API groups in order of preference.
func (c *Catalog) groups() []*metav1.APIGroup {
	var groups []*metav1.APIGroup
	for _, r := range c.All() {
		if n := len(groups); n == 0 || groups[n-1].Name != r.Group {
			groups = append(groups, &metav1.APIGroup{Name: r.Group})
		}
		g := groups[len(groups)-1]
		if n := len(g.Versions); n == 0 || g.Versions[n-1].Version != r.Version {
			g.Versions = append(g.Versions, metav1.GroupVersionForDiscovery{
				GroupVersion: r.GroupVersion().String(),
				Version:      r.Version,
			})
		}
	}
	for _, g := range groups {
		g.PreferredVersion = g.Versions[0]
	}
	return groups
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

func (c *Catalog) writeVersion(gv schema.GroupVersion) ([]byte, error) {
	if c.base != nil && !c.touches(gv) {
		path := "/apis/" + gv.String()
		if gv.Group == "" {
			path = "/api/" + gv.Version
		}
		return c.base.Document(path, false)
	}
	list := &metav1.APIResourceList{
		TypeMeta:     metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"},
		GroupVersion: gv.String(),
	}
	for _, r := range c.All() {
		if r.GroupVersion() != gv {
			continue
		}
		list.APIResources = append(list.APIResources, metav1.APIResource{
			Name:         r.Plural,
			SingularName: r.Singular,
			Namespaced:   r.Namespaced,
			Kind:         r.Kind,
			Verbs:        r.Verbs(),
			ShortNames:   r.ShortNames,
			Categories:   r.Categories,
		})
		for _, name := range r.subresources() {
			kind := r.subresourceKind(name)
			sub := metav1.APIResource{
				Name:       r.Plural + "/" + name,
				Namespaced: r.Namespaced,
				Kind:       kind.Kind,
				Verbs:      SubresourceVerbs(name),
			}
			if kind != r.GroupVersionKind {
				sub.Group, sub.Version = kind.Group, kind.Version
			}
			list.APIResources = append(list.APIResources, sub)
		}
	}
	if len(list.APIResources) == 0 {
		return nil, nil
	}
	return json.Marshal(list)
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
