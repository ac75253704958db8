// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"net/http"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// attributes are what counters and faults distinguish requests by.
type attributes struct {
	verb string
	// resource is "pods", "deployments.apps" or "pods/status"; of a request
	// that concerns no resource, its path.
	resource string
}

// names reports whether a name, with or without a group, is that of the resource.
func (a attributes) names(name string) bool {
	if a.resource == name {
		return true
	}
	plural, rest, _ := strings.Cut(a.resource, ".")
	_, sub, hasSub := strings.Cut(rest, "/")
	if hasSub {
		plural += "/" + sub
	}
	return plural == name && !strings.HasPrefix(name, "/")
}

// request is a parsed request.
type request struct {
	attributes
	resource    schema.GroupVersionResource // empty if it concerns no resource
	namespace   string
	name        string
	subresource string
}

// parse parses the method, path and query of a request.
func parse(r *http.Request) request {
	req := request{attributes: attributes{verb: strings.ToLower(r.Method), resource: r.URL.Path}}
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	switch {
	case parts[0] == "api" && len(parts) > 2:
		req.resource.Version = parts[1]
		parts = parts[2:]
	case parts[0] == "apis" && len(parts) > 3:
		req.resource.Group, req.resource.Version = parts[1], parts[2]
		parts = parts[3:]
	default:
		return req
	}
	if parts[0] == "namespaces" && len(parts) > 2 && parts[2] != "status" && parts[2] != "finalize" {
		req.namespace = parts[1]
		parts = parts[2:]
	}
	req.resource.Resource = parts[0]
	if len(parts) > 1 {
		req.name = parts[1]
	}
	if len(parts) > 2 {
		req.subresource = strings.Join(parts[2:], "/")
	}
	req.attributes = attributes{verb: req.resourceVerb(r), resource: req.resource.GroupResource().String()}
	if req.subresource != "" {
		req.attributes.resource += "/" + req.subresource
	}
	return req
}

func (req *request) resourceVerb(r *http.Request) string {
	switch r.Method {
	case http.MethodGet, http.MethodHead:
		watch := r.URL.Query().Get("watch")
		switch {
		case watch != "" && watch != "0" && watch != "false":
			return "watch"
		case req.name == "":
			return "list"
		}
		return "get"
	case http.MethodPost:
		return "create"
	case http.MethodPut:
		return "update"
	case http.MethodPatch:
		return "patch"
	case http.MethodDelete:
		if req.name == "" {
			return "deletecollection"
		}
		return "delete"
	}
	return strings.ToLower(r.Method)
}

// counters count requests and open watches.
type counters struct {
	mu       sync.Mutex
	requests map[attributes]int // guarded by mu
	watches  map[string]int     // by resource; guarded by mu
}

func (c *counters) request(a attributes) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.requests[a]++
}

func (c *counters) watch(resource string, delta int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.watches[resource] += delta
	if c.watches[resource] == 0 {
		delete(c.watches, resource)
	}
}

// Requests counts the requests of a verb on a resource since the server
// started or the counts were reset. An empty string matches all.
func (s *Server) Requests(verb, resource string) int {
	s.counters.mu.Lock()
	defer s.counters.mu.Unlock()
	n := 0
	for a, count := range s.counters.requests {
		if (verb == "" || a.verb == verb) && (resource == "" || a.names(resource)) {
			n += count
		}
	}
	return n
}

// ResetRequests sets all request counts to zero.
func (s *Server) ResetRequests() {
	s.counters.mu.Lock()
	defer s.counters.mu.Unlock()
	clear(s.counters.requests)
}

// OpenWatches counts the watches of a resource that are open now; of all, if
// it is empty.
func (s *Server) OpenWatches(resource string) int {
	s.counters.mu.Lock()
	defer s.counters.mu.Unlock()
	n := 0
	for r, count := range s.counters.watches {
		if resource == "" || (attributes{resource: r}).names(resource) {
			n += count
		}
	}
	return n
}
