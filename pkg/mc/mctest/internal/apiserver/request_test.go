// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestParse(t *testing.T) {
	for _, test := range []struct {
		method, url    string
		verb, resource string
		namespace      string
		object         string
	}{
		{method: "GET", url: "/version", verb: "get", resource: "/version"},
		{method: "GET", url: "/api", verb: "get", resource: "/api"},
		{method: "GET", url: "/apis/apps/v1", verb: "get", resource: "/apis/apps/v1"},
		{method: "GET", url: "/api/v1/nodes", verb: "list", resource: "nodes"},
		{method: "GET", url: "/api/v1/nodes/a", verb: "get", resource: "nodes", object: "a"},
		{method: "GET", url: "/api/v1/namespaces", verb: "list", resource: "namespaces"},
		{method: "GET", url: "/api/v1/namespaces/a", verb: "get", resource: "namespaces", object: "a"},
		{method: "PUT", url: "/api/v1/namespaces/a/finalize", verb: "update", resource: "namespaces/finalize", object: "a"},
		{method: "PUT", url: "/api/v1/namespaces/a/status", verb: "update", resource: "namespaces/status", object: "a"},
		{method: "GET", url: "/api/v1/namespaces/a/pods?watch=true", verb: "watch", resource: "pods", namespace: "a"},
		{method: "GET", url: "/api/v1/namespaces/a/pods?watch=0", verb: "list", resource: "pods", namespace: "a"},
		{method: "POST", url: "/apis/apps/v1/namespaces/a/deployments", verb: "create", resource: "deployments.apps", namespace: "a"},
		{method: "PATCH", url: "/apis/apps/v1/namespaces/a/deployments/b/status", verb: "patch", resource: "deployments.apps/status", namespace: "a", object: "b"},
		{method: "DELETE", url: "/api/v1/namespaces/a/pods", verb: "deletecollection", resource: "pods", namespace: "a"},
		{method: "DELETE", url: "/api/v1/namespaces/a/pods/b", verb: "delete", resource: "pods", namespace: "a", object: "b"},
	} {
		t.Run(test.method+" "+test.url, func(t *testing.T) {
			got := parse(httptest.NewRequest(test.method, test.url, http.NoBody))
			if got.verb != test.verb || got.attributes.resource != test.resource || got.namespace != test.namespace || got.name != test.object {
				t.Errorf("got %+v", got)
			}
		})
	}
}

func TestNamesOfResources(t *testing.T) {
	for _, test := range []struct {
		resource, name string
		want           bool
	}{
		{"pods", "pods", true},
		{"pods", "nodes", false},
		{"deployments.apps", "deployments", true},
		{"deployments.apps", "deployments.apps", true},
		{"deployments.apps", "deployments.extensions", false},
		{"deployments.apps/status", "deployments/status", true},
		{"deployments.apps/status", "deployments", false},
		{"pods/status", "pods/status", true},
		{"pods/status", "pods", false},
		{"/version", "/version", true},
		{"/apis/example.org/v1", "/apis/example", false},
	} {
		if got := (attributes{resource: test.resource}).names(test.name); got != test.want {
			t.Errorf("%q is %q: got %v", test.resource, test.name, got)
		}
	}
}
