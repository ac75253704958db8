// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"net/http"
	"net/url"
	"strings"
	"time"
)

// query is a request of a reflector.
type query struct {
	request  *http.Request
	resource string // with its group
	root     string // path of the API server
	version  string // resource version
	watch    bool
	initial  bool // the watch lists objects first
	page     bool // not the first one of a list
	timeout  time.Duration
}

func newQuery(request *http.Request) *query {
	values := request.URL.Query()
	q := &query{
		request: request,
		version: values.Get("resourceVersion"),
		watch:   values.Get("watch") == "true" || values.Get("watch") == "1",
		initial: values.Get("sendInitialEvents") == "true",
		page:    values.Get("continue") != "",
	}
	if timeout, err := time.ParseDuration(values.Get("timeoutSeconds") + "s"); err == nil {
		q.timeout = timeout
	}
	q.root, q.resource = splitPath(request.URL.Path)
	return q
}

// resumes reports whether the response must not be older than a resource version.
func (q *query) resumes() bool { return q.version != "" && q.version != "0" }

// lists reports whether the response replaces the content of a cache.
func (q *query) lists() bool { return q.initial || !q.watch && !q.page }

// splitPath splits the path of a collection into that of the API server and the
// name of the resource with its group.
func splitPath(path string) (root, resource string) {
	parts := strings.Split(strings.TrimSuffix(path, "/"), "/")
	resource, parts = parts[len(parts)-1], parts[:len(parts)-1]
	if n := len(parts); n > 4 && parts[n-2] == "namespaces" {
		parts = parts[:n-2]
	}
	switch n := len(parts); {
	case n >= 3 && parts[n-3] == "apis":
		return strings.Join(parts[:n-3], "/"), resource + "." + parts[n-2]
	case n >= 2 && parts[n-2] == "api":
		return strings.Join(parts[:n-2], "/"), resource
	}
	return "", resource
}

// systemNamespace is a list of the namespace that health probes read, too.
func (q *query) systemNamespace() *url.URL {
	of := q.request.URL
	return &url.URL{
		Scheme: of.Scheme, User: of.User, Host: of.Host,
		Path:     q.root + "/api/v1/namespaces",
		RawQuery: url.Values{"limit": {"1"}, "fieldSelector": {"metadata.name=kube-system"}}.Encode(),
	}
}

// ownCollection is a list of one object of the request's own kind.
func (q *query) ownCollection() *url.URL {
	u, values := *q.request.URL, url.Values{"limit": {"1"}}
	for _, selector := range []string{"labelSelector", "fieldSelector"} {
		if value := u.Query().Get(selector); value != "" {
			values.Set(selector, value)
		}
	}
	u.RawQuery = values.Encode()
	return &u
}
