// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package mctest_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
)

// TestComparison sends the same requests to both servers and compares the
// responses.
func TestComparison(t *testing.T) {
	kubernetes := realServer(t)
	cluster := mctest.New(t).Config()
	for _, config := range []*rest.Config{kubernetes, cluster} {
		s := connect(t, config)
		s.define(t, definition(widgetKind, apiextensionsv1.NamespaceScoped, true), widgetKind)
	}
	t.Run("resources that both serve are described alike", func(t *testing.T) {
		theirs, ours := describe(t, kubernetes), describe(t, cluster)
		missing := []string{}
		for name, want := range theirs {
			got, ok := ours[name]
			if !ok {
				missing = append(missing, name)
				continue
			}
			if got != want {
				t.Errorf("%s:\n  got %s\n want %s", name, got, want)
			}
		}
		slices.Sort(missing)
		t.Logf("not served: %s", strings.Join(missing, " "))
		for name := range ours {
			if _, ok := theirs[name]; !ok {
				t.Logf("served only by mctest: %s", name)
			}
		}
	})
	for _, q := range questions {
		t.Run(q.name, func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(ask(t, cluster, q)).To(Equal(ask(t, kubernetes, q)))
		})
	}
}

// describe returns what clients use of each resource and status subresource.
func describe(t *testing.T, config *rest.Config) map[string]string {
	t.Helper()
	_, lists, err := discovery.NewDiscoveryClientForConfigOrDie(config).ServerGroupsAndResources()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, list := range lists {
		for _, r := range list.APIResources {
			if _, sub, ok := strings.Cut(r.Name, "/"); ok && sub != "status" {
				continue
			}
			raw, err := json.Marshal(map[string]any{
				"kind": r.Kind, "namespaced": r.Namespaced, "singular": r.SingularName,
				"short": r.ShortNames, "verbs": sorted(r.Verbs), "categories": r.Categories,
			})
			if err != nil {
				t.Fatal(err)
			}
			out[list.GroupVersion+"/"+r.Name] = string(raw)
		}
	}
	return out
}

func sorted(in []string) []string {
	out := slices.Clone(in)
	slices.Sort(out)
	return out
}

// A question is a request that client libraries do not send.
type question struct {
	name, method, path, body string
	header                   http.Header
}

// An answer is what clients use of a response; messages may differ.
type answer struct {
	Code   int
	Reason metav1.StatusReason
}

func ask(t *testing.T, config *rest.Config, q question) answer {
	t.Helper()
	c, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(t.Context(), q.method, strings.TrimSuffix(base.String(), "/")+q.path, strings.NewReader(q.body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	maps.Copy(r.Header, q.header)
	response, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var body bytes.Buffer
	if _, err := body.ReadFrom(response.Body); err != nil {
		t.Fatal(err)
	}
	a := answer{Code: response.StatusCode}
	var status metav1.Status
	if json.Unmarshal(body.Bytes(), &status) == nil && status.Status == metav1.StatusFailure {
		a.Reason = status.Reason
	}
	return a
}

const (
	inDefault  = "/api/v1/namespaces/default/configmaps"
	widgets    = "/apis/mctest.example.org/v1/namespaces/default/widgets"
	kubeSystem = "/api/v1/namespaces/kube-system"
)

var questions = []question{
	{name: "a path that is nothing", method: "GET", path: "/nothing"},
	{name: "a group that is nothing", method: "GET", path: "/apis/nothing.example.org"},
	{name: "a version that is nothing", method: "GET", path: "/apis/apps/v9"},
	{name: "a resource that is nothing", method: "GET", path: "/api/v1/nothings"},
	{name: "an object that is not there", method: "GET", path: inDefault + "/missing"},
	{name: "a custom object that is not there", method: "GET", path: widgets + "/missing"},
	{name: "a namespaced object without a namespace", method: "GET", path: "/api/v1/configmaps/a"},
	{name: "creation of a namespaced object without a namespace", method: "POST", path: "/api/v1/configmaps", body: `{"metadata":{"name":"a"}}`},
	{name: "an object of the cluster in a namespace", method: "GET", path: "/api/v1/namespaces/default/nodes"},
	{name: "a subresource that is nothing", method: "GET", path: inDefault + "/a/nothing"},
	{name: "status of a kind without", method: "GET", path: inDefault + "/a/status"},
	{name: "status of a namespace", method: "GET", path: kubeSystem + "/status"},
	{name: "creation under a name", method: "POST", path: inDefault + "/a", body: `{"metadata":{"name":"a"}}`},
	{name: "an update of a collection", method: "PUT", path: inDefault, body: `{"metadata":{"name":"a"}}`},
	{name: "an update under another name", method: "PUT", path: inDefault + "/a", body: `{"metadata":{"name":"b"}}`},
	{name: "a body in another namespace", method: "POST", path: inDefault, body: `{"metadata":{"name":"b","namespace":"other"}}`},
	{name: "a body of another kind", method: "POST", path: inDefault, body: `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"b"}}`},
	{name: "a custom body of another kind", method: "POST", path: widgets, body: `{"apiVersion":"mctest.example.org/v1","kind":"Other","metadata":{"name":"b"}}`},
	{name: "a custom body of another version", method: "POST", path: widgets, body: `{"apiVersion":"mctest.example.org/v2","kind":"Widget","metadata":{"name":"b"}}`},
	{name: "a custom body without a name", method: "POST", path: widgets, body: `{"apiVersion":"mctest.example.org/v1","kind":"Widget","metadata":{}}`},
	{name: "a body without a name", method: "POST", path: inDefault, body: `{"apiVersion":"v1","kind":"ConfigMap","metadata":{}}`},
	{name: "a name that is none", method: "POST", path: inDefault, body: `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"A B"}}`},
	{name: "a label that is none", method: "POST", path: inDefault, body: `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","labels":{"a b":"c"}}}`},
	{name: "creation with a resource version", method: "POST", path: inDefault, body: `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","resourceVersion":"5"}}`},
	{name: "a field of another type", method: "POST", path: inDefault, body: `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"a":1}}`},
	{name: "a label that the selector cannot parse", method: "GET", path: inDefault + "?labelSelector=a%20b%20c"},
	{name: "a field that cannot be selected", method: "GET", path: inDefault + "?fieldSelector=data.x%3D1"},
	{name: "a custom field that cannot be selected", method: "GET", path: widgets + "?fieldSelector=spec.x%3D1"},
	{name: "a list from a resource version that is none", method: "GET", path: inDefault + "?resourceVersion=abc"},
	{name: "a watch from a resource version that is none", method: "GET", path: inDefault + "?watch=true&resourceVersion=abc"},
	{name: "a continue token that is none", method: "GET", path: inDefault + "?continue=abc"},
	{name: "a dry run of some kind", method: "POST", path: inDefault + "?dryRun=Some", body: `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}`},
	{name: "a media type that is none", method: "GET", path: inDefault, header: http.Header{"Accept": {"text/html"}}},
	{name: "a body of a media type that is none", method: "POST", path: inDefault, body: `x`, header: http.Header{"Content-Type": {"text/plain"}}},
	{name: "a patch of a media type that is none", method: "PATCH", path: kubeSystem, body: `{}`, header: http.Header{"Content-Type": {"application/json"}}},
	{name: "a JSON patch that is none", method: "PATCH", path: kubeSystem, body: `{}`, header: http.Header{"Content-Type": {"application/json-patch+json"}}},
	{name: "a JSON patch of a path that is not there", method: "PATCH", path: kubeSystem, body: `[{"op":"remove","path":"/spec/nothing"}]`, header: http.Header{"Content-Type": {"application/json-patch+json"}}},
	{name: "a patch of the name", method: "PATCH", path: kubeSystem, body: `{"metadata":{"name":"other"}}`, header: http.Header{"Content-Type": {"application/merge-patch+json"}}},
	{name: "a patch of the UID", method: "PATCH", path: kubeSystem, body: `{"metadata":{"uid":"other"}}`, header: http.Header{"Content-Type": {"application/merge-patch+json"}}},
	{name: "a patch of a resource version that is not the latest", method: "PATCH", path: kubeSystem, body: `{"metadata":{"resourceVersion":"1"}}`, header: http.Header{"Content-Type": {"application/merge-patch+json"}}},
	{name: "an apply of another kind", method: "PATCH", path: kubeSystem + "?fieldManager=a", body: `{"apiVersion":"v1","kind":"Secret"}`, header: http.Header{"Content-Type": {"application/apply-patch+yaml"}}},
	{name: "an apply without a manager", method: "PATCH", path: kubeSystem, body: `{"apiVersion":"v1","kind":"Namespace"}`, header: http.Header{"Content-Type": {"application/apply-patch+yaml"}}},
	{name: "a deletion that is not there", method: "DELETE", path: inDefault + "/missing"},
}
