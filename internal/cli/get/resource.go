// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package get

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
)

// query is what is asked of each cluster.
type query struct {
	kind, name    string
	namespace     string
	allNamespaces bool
	labels        string
	fields        string
	asTable       bool
}

// resource is the kind of a query in one cluster.
type resource struct {
	*query
	client     *rest.RESTClient
	path       []string
	namespaced bool
}

// tableAccept asks for the columns that kubectl prints.
const tableAccept = "application/json;as=Table;v=v1;g=meta.k8s.io"

// pageSize is how many objects one request returns.
const pageSize = 500

// find asks the cluster for the resource that the user means: its plural, singular, short
// name or kind, with or without a version and group.
func (q *query) find(ctx context.Context, config *rest.Config) (*resource, error) {
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	mapping, err := q.mapping(ctx, config, httpClient)
	if err != nil {
		return nil, err
	}
	config.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	config.GroupVersion = &schema.GroupVersion{}
	client, err := rest.RESTClientForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, err
	}
	r := &resource{query: q, client: client, namespaced: mapping.Scope.Name() == meta.RESTScopeNameNamespace}
	r.path = []string{"apis", mapping.Resource.Group, mapping.Resource.Version}
	if mapping.Resource.Group == "" {
		r.path = []string{"api", mapping.Resource.Version}
	}
	if r.namespaced && !q.allNamespaces {
		r.path = append(r.path, "namespaces", q.namespace)
	}
	r.path = append(r.path, mapping.Resource.Resource)
	return r, nil
}

func (q *query) mapping(ctx context.Context, config *rest.Config, httpClient *http.Client) (*meta.RESTMapping, error) {
	bound := *httpClient // discovery has no context
	bound.Transport = contextTransport{ctx: ctx, next: httpClient.Transport}
	client, err := discovery.NewDiscoveryClientForConfigAndClient(config, &bound)
	if err != nil {
		return nil, err
	}
	// Discovery ignores some errors; the first request shows whether the cluster responds.
	if err := client.RESTClient().Get().AbsPath("/version").Do(ctx).Error(); err != nil {
		return nil, err
	}
	cached := memory.NewMemCacheClient(client)
	mapper := restmapper.NewShortcutExpander(restmapper.NewDeferredDiscoveryRESTMapper(cached), cached, nil)
	var found schema.GroupVersionResource
	full, group := schema.ParseResourceArg(q.kind)
	if full != nil {
		found, err = mapper.ResourceFor(*full)
	}
	if full == nil || err != nil {
		found, err = mapper.ResourceFor(group.WithVersion(""))
	}
	if meta.IsNoMatchError(err) {
		return nil, fmt.Errorf("the cluster has no kind %q", q.kind)
	}
	if err != nil {
		return nil, err
	}
	kind, err := mapper.KindFor(found)
	if err != nil {
		return nil, err
	}
	return mapper.RESTMapping(kind.GroupKind(), kind.Version)
}

// contextTransport ends its requests with a context, that of one search for a resource.
type contextTransport struct {
	ctx  context.Context
	next http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (t contextTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	next := t.next
	if next == nil {
		next = http.DefaultTransport
	}
	return next.RoundTrip(request.WithContext(t.ctx))
}

func (r *resource) request() *rest.Request {
	request := r.client.Get().AbsPath(r.path...)
	if r.name != "" {
		request.Param("fieldSelector", "metadata.name="+r.name)
	} else {
		if r.labels != "" {
			request.Param("labelSelector", r.labels)
		}
		if r.fields != "" {
			request.Param("fieldSelector", r.fields)
		}
	}
	accept := "application/json"
	if r.asTable {
		accept = tableAccept + "," + accept
	}
	return request.SetHeader("Accept", accept)
}

// list reads all pages into the result.
func (r *resource) list(ctx context.Context, into *result) error {
	for next := ""; ; {
		request := r.request().Param("limit", fmt.Sprint(pageSize))
		if next != "" {
			request.Param("continue", next)
		}
		response := request.Do(ctx)
		if err := response.Error(); err != nil { // Raw has no message
			return err
		}
		body, err := response.Raw()
		if err != nil {
			return err
		}
		var list metav1.ListInterface
		if r.asTable {
			list, err = into.addTable(body)
		} else {
			list, err = into.addObjects(body)
		}
		if err != nil {
			return err
		}
		into.version = list.GetResourceVersion()
		if next = list.GetContinue(); next == "" {
			return nil
		}
	}
}

func (r *result) addTable(body []byte) (metav1.ListInterface, error) {
	page := &metav1.Table{}
	if err := json.Unmarshal(body, page); err != nil {
		return nil, err
	}
	if page.Kind != "Table" {
		return nil, fmt.Errorf("the cluster returned a %q instead of a Table: use -o json", page.Kind)
	}
	if r.table == nil {
		r.table = page
	} else {
		r.table.Rows = append(r.table.Rows, page.Rows...)
	}
	return page, nil
}

func (r *result) addObjects(body []byte) (metav1.ListInterface, error) {
	page := &unstructured.UnstructuredList{}
	if err := page.UnmarshalJSON(body); err != nil {
		return nil, err
	}
	r.objects = append(r.objects, page.Items...)
	return page, nil
}

// watch calls the function for each event after the resource version, until the server
// ends the watch.
func (r *resource) watch(ctx context.Context, version string, changed func(*metav1.Table)) error {
	body, err := r.request().Param("watch", "true").Param("resourceVersion", version).Stream(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = body.Close() }()
	decoder := json.NewDecoder(body)
	for {
		event := metav1.WatchEvent{}
		if err := decoder.Decode(&event); err != nil {
			if err == io.EOF {
				return nil
			}
			return err
		}
		if event.Type == "ERROR" {
			status := &metav1.Status{}
			if err := json.Unmarshal(event.Object.Raw, status); err != nil {
				return err
			}
			return &apierrors.StatusError{ErrStatus: *status}
		}
		table := &metav1.Table{}
		if err := json.Unmarshal(event.Object.Raw, table); err != nil {
			return err
		}
		changed(table)
	}
}
