// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package mapping

import (
	"encoding/json"
	"fmt"
	"slices"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
)

// The two discovery documents: of the core group, and of all other groups.
const (
	corePath   = "/api"
	groupsPath = "/apis"
)

// accept prefers aggregated discovery to the format of older servers.
const accept = discovery.AcceptV2 + "," + discovery.AcceptV1

var aggregated = apidiscoveryv2.SchemeGroupVersion.WithKind("APIGroupDiscoveryList")

// document is a discovery document.
type document struct {
	groups []group
}

// group is an API group with its versions, the preferred one first.
type group struct {
	name     string
	versions []version
}

// version is a version of a group. Its resources are nil if the document does not
// list them.
type version struct {
	name      string
	resources *resources
}

// document returns the document of a response.
func (s *store) document(path, contentType string, body []byte) (*document, error) {
	d := newDigest()
	d.add(path, contentType)
	d.addBytes(body)
	k := d.key()
	if known := s.documents.get(k); known != nil {
		return known, nil
	}
	decode := s.decodeGroups
	if ok, _ := discovery.ContentTypeIsGVK(contentType, aggregated); ok {
		decode = s.decodeAggregated
	} else if path == corePath {
		decode = s.decodeVersions
	}
	groups, err := decode(body)
	if err != nil {
		return nil, fmt.Errorf("cannot decode %s: %w", path, err)
	}
	return s.documents.add(k, &document{groups: groups}), nil
}

func (s *store) decodeAggregated(body []byte) ([]group, error) {
	list := apidiscoveryv2.APIGroupDiscoveryList{}
	if err := json.Unmarshal(body, &list); err != nil {
		return nil, err
	}
	_, served, _ := discovery.SplitGroupsAndResources(list)
	groups := make([]group, 0, len(list.Items))
	for _, item := range list.Items {
		g := group{name: item.Name}
		for _, v := range item.Versions {
			one := version{name: v.Version}
			gv := schema.GroupVersion{Group: item.Name, Version: v.Version}
			if list := served[gv]; list != nil { // nil if it is stale
				one.resources = s.resourcesOf(gv, list.APIResources)
			}
			g.versions = append(g.versions, one)
		}
		groups = append(groups, g)
	}
	return groups, nil
}

// decodeGroups decodes the groups of a server without aggregated discovery.
func (s *store) decodeGroups(body []byte) ([]group, error) {
	list := metav1.APIGroupList{}
	if err := json.Unmarshal(body, &list); err != nil {
		return nil, err
	}
	groups := make([]group, 0, len(list.Groups))
	for _, item := range list.Groups {
		g := group{name: item.Name}
		for _, v := range item.Versions {
			g.versions = append(g.versions, version{name: v.Version})
		}
		preferred := version{name: item.PreferredVersion.Version}
		if i := slices.Index(g.versions, preferred); i > 0 {
			g.versions = slices.Insert(slices.Delete(g.versions, i, i+1), 0, preferred)
		}
		groups = append(groups, g)
	}
	return groups, nil
}

// decodeVersions decodes the core group of a server without aggregated
// discovery.
func (s *store) decodeVersions(body []byte) ([]group, error) {
	list := metav1.APIVersions{}
	if err := json.Unmarshal(body, &list); err != nil {
		return nil, err
	}
	if len(list.Versions) == 0 {
		return nil, nil
	}
	g := group{}
	for _, name := range list.Versions {
		g.versions = append(g.versions, version{name: name})
	}
	return []group{g}, nil
}
