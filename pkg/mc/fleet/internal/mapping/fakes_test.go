// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package mapping

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"
	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeGroup is a group that a server serves.
type fakeGroup struct {
	name     string
	versions []fakeVersion // the preferred one first
}

type fakeVersion struct {
	name      string
	resources []metav1.APIResource
	stale     bool // its server cannot be reached
}

// server is a fake API server with discovery.
type server struct {
	old bool // without aggregated discovery

	mu       sync.Mutex // guards what follows
	groups   []fakeGroup
	fault    int // a status to respond with
	requests map[string]int
	// hold delays responses, after they were made, until it returns.
	hold func(path string)
}

// resource returns a resource with names of the usual form.
func resource(plural, kind string) metav1.APIResource {
	return metav1.APIResource{
		Name: plural, SingularName: strings.ToLower(kind), Kind: kind, Namespaced: true, Verbs: metav1.Verbs{"get", "list"},
	}
}

// kubernetes returns a server with groups of Kubernetes.
func kubernetes(old bool) *server {
	deployments := resource("deployments", "Deployment")
	scale := metav1.APIResource{Name: "deployments/scale", Group: "autoscaling", Version: "v1", Kind: "Scale", Namespaced: true}
	return &server{old: old, groups: []fakeGroup{
		{"", []fakeVersion{{name: "v1", resources: []metav1.APIResource{resource("pods", "Pod"), resource("events", "Event"), resource("endpoints", "Endpoints")}}}},
		{"apps", []fakeVersion{{name: "v1", resources: []metav1.APIResource{deployments, scale}}}},
		{"events.k8s.io", []fakeVersion{{name: "v1", resources: []metav1.APIResource{resource("events", "Event")}}}},
		{"autoscaling", []fakeVersion{
			{name: "v2", resources: []metav1.APIResource{resource("horizontalpodautoscalers", "HorizontalPodAutoscaler")}},
			{name: "v1", resources: []metav1.APIResource{resource("horizontalpodautoscalers", "HorizontalPodAutoscaler"), resource("scales", "Scale")}},
		}},
	}}
}

// mapper returns a mapper of the server.
func (s *server) mapper(t interface{ Fatal(...any) }, in *store) *Mapper {
	m, err := newMapper(in, &rest.Config{Host: "http://fake", QPS: -1}, s.client())
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func (s *server) client() *http.Client { return &http.Client{Transport: s} }

// set adds or replaces a group.
func (s *server) set(group string, versions ...fakeVersion) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.groups = slices.Clone(s.groups)
	i := slices.IndexFunc(s.groups, func(g fakeGroup) bool { return g.name == group })
	if i < 0 {
		s.groups = append(s.groups, fakeGroup{group, versions})
		return
	}
	s.groups[i].versions = versions
}

// remove removes a group.
func (s *server) remove(group string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.groups = slices.DeleteFunc(slices.Clone(s.groups), func(g fakeGroup) bool { return g.name == group })
}

func (s *server) setFault(status int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = status
}

// setHold delays later responses. They have the state at the time of the request.
func (s *server) setHold(hold func(path string)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hold = hold
}

// takeRequests returns the number of requests by path since the last call.
func (s *server) takeRequests() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	requests := maps.Clone(s.requests)
	clear(s.requests)
	return requests
}

// RoundTrip implements http.RoundTripper.
func (s *server) RoundTrip(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	if s.requests == nil {
		s.requests = map[string]int{}
	}
	s.requests[r.URL.Path]++
	w := httptest.NewRecorder()
	if s.fault != 0 {
		w.WriteHeader(s.fault)
	} else {
		s.serve(w, r)
	}
	hold := s.hold
	s.mu.Unlock()
	if hold != nil {
		hold(r.URL.Path)
	}
	return w.Result(), r.Context().Err()
}

func (s *server) serve(w http.ResponseWriter, r *http.Request) {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	core := parts[0] == "api"
	groups := slices.DeleteFunc(slices.Clone(s.groups), func(g fakeGroup) bool { return (g.name == "") != core })
	switch {
	case len(parts) == 1 && !s.old && strings.Contains(r.Header.Get("Accept"), "APIGroupDiscoveryList"):
		reply(w, discovery.AcceptV2, aggregate(groups))
	case len(parts) == 1 && core:
		list := metav1.APIVersions{}
		for _, g := range groups {
			for _, v := range g.versions {
				list.Versions = append(list.Versions, v.name)
			}
		}
		reply(w, discovery.AcceptV1, list)
	case len(parts) == 1:
		list := metav1.APIGroupList{}
		for _, g := range groups {
			list.Groups = append(list.Groups, g.legacy())
		}
		reply(w, discovery.AcceptV1, list)
	default:
		gv := schema.GroupVersion{Version: parts[len(parts)-1]}
		if !core {
			gv.Group = parts[1]
		}
		serveVersion(w, groups, gv)
	}
}

func serveVersion(w http.ResponseWriter, groups []fakeGroup, gv schema.GroupVersion) {
	for _, g := range groups {
		for _, v := range g.versions {
			switch {
			case g.name != gv.Group || v.name != gv.Version:
			case v.stale:
				w.WriteHeader(http.StatusServiceUnavailable)
				return
			default:
				reply(w, discovery.AcceptV1, metav1.APIResourceList{GroupVersion: gv.String(), APIResources: v.resources})
				return
			}
		}
	}
	w.WriteHeader(http.StatusNotFound)
}

func reply(w http.ResponseWriter, contentType string, object any) {
	w.Header().Set("Content-Type", contentType)
	_ = json.NewEncoder(w).Encode(object)
}

// legacy returns the group with the preferred version last, as a server may.
func (g fakeGroup) legacy() metav1.APIGroup {
	out := metav1.APIGroup{Name: g.name}
	for _, v := range g.versions {
		gv := schema.GroupVersion{Group: g.name, Version: v.name}
		out.Versions = append(out.Versions, metav1.GroupVersionForDiscovery{GroupVersion: gv.String(), Version: v.name})
	}
	if len(out.Versions) > 0 {
		out.PreferredVersion = out.Versions[0]
	}
	slices.Reverse(out.Versions)
	return out
}

func aggregate(groups []fakeGroup) apidiscoveryv2.APIGroupDiscoveryList {
	list := apidiscoveryv2.APIGroupDiscoveryList{}
	for _, g := range groups {
		item := apidiscoveryv2.APIGroupDiscovery{ObjectMeta: metav1.ObjectMeta{Name: g.name}}
		for _, v := range g.versions {
			one := apidiscoveryv2.APIVersionDiscovery{Version: v.name, Freshness: apidiscoveryv2.DiscoveryFreshnessCurrent}
			if v.stale {
				one.Freshness = apidiscoveryv2.DiscoveryFreshnessStale
			} else {
				one.Resources = aggregateResources(g.name, v)
			}
			item.Versions = append(item.Versions, one)
		}
		list.Items = append(list.Items, item)
	}
	return list
}

func aggregateResources(group string, v fakeVersion) []apidiscoveryv2.APIResourceDiscovery {
	var list []apidiscoveryv2.APIResourceDiscovery
	for _, r := range v.resources {
		name, sub, isSub := strings.Cut(r.Name, "/")
		kind := &metav1.GroupVersionKind{Group: group, Version: v.name, Kind: r.Kind}
		if isSub {
			i := slices.IndexFunc(list, func(r apidiscoveryv2.APIResourceDiscovery) bool { return r.Resource == name })
			list[i].Subresources = append(list[i].Subresources, apidiscoveryv2.APISubresourceDiscovery{Subresource: sub, ResponseKind: kind})
			continue
		}
		one := apidiscoveryv2.APIResourceDiscovery{Resource: r.Name, SingularResource: r.SingularName, ResponseKind: kind, Verbs: r.Verbs, Scope: apidiscoveryv2.ScopeCluster}
		if r.Namespaced {
			one.Scope = apidiscoveryv2.ScopeNamespace
		}
		list = append(list, one)
	}
	return list
}
