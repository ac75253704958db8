// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package mapping

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
)

var _ meta.RESTMapper = &Mapper{}

// Mapper maps the kinds and resources of one cluster. It sends discovery requests
// when a lookup needs them. All methods may be called concurrently.
type Mapper struct {
	store  *store
	client *discovery.DiscoveryClient
	known  atomic.Pointer[snapshot]
	begun  atomic.Int64 // number of requests so far

	mu        sync.Mutex // guards what follows, and writes to known and begun; not held during requests
	requests  map[target]*request
	allowedAt map[query]time.Time // see allow
}

// New returns a mapper for the cluster of the config and the client. It sends no
// request.
func New(config *rest.Config, client *http.Client) (meta.RESTMapper, error) {
	return newMapper(&shared, config, client)
}

func newMapper(s *store, config *rest.Config, client *http.Client) (*Mapper, error) {
	discovering, err := discovery.NewDiscoveryClientForConfigAndClient(config, client)
	if err != nil {
		return nil, err
	}
	m := &Mapper{
		store:     s,
		client:    discovering,
		requests:  map[target]*request{},
		allowedAt: map[query]time.Time{},
	}
	m.known.Store(&snapshot{catalog: s.catalogOf(nil, nil)})
	return m, nil
}

// KindFor implements meta.RESTMapper.
func (m *Mapper) KindFor(resource schema.GroupVersionResource) (schema.GroupVersionKind, error) {
	return find(m, queryOf(resource), func(ctx context.Context, in *catalog) (schema.GroupVersionKind, error) {
		return in.KindForWithContext(ctx, resource)
	})
}

// KindsFor implements meta.RESTMapper.
func (m *Mapper) KindsFor(resource schema.GroupVersionResource) ([]schema.GroupVersionKind, error) {
	return find(m, queryOf(resource), func(ctx context.Context, in *catalog) ([]schema.GroupVersionKind, error) {
		return in.KindsForWithContext(ctx, resource)
	})
}

// ResourceFor implements meta.RESTMapper.
func (m *Mapper) ResourceFor(resource schema.GroupVersionResource) (schema.GroupVersionResource, error) {
	return find(m, queryOf(resource), func(ctx context.Context, in *catalog) (schema.GroupVersionResource, error) {
		return in.ResourceForWithContext(ctx, resource)
	})
}

// ResourcesFor implements meta.RESTMapper.
func (m *Mapper) ResourcesFor(resource schema.GroupVersionResource) ([]schema.GroupVersionResource, error) {
	return find(m, queryOf(resource), func(ctx context.Context, in *catalog) ([]schema.GroupVersionResource, error) {
		return in.ResourcesForWithContext(ctx, resource)
	})
}

// RESTMapping implements meta.RESTMapper.
func (m *Mapper) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	return find(m, kindQuery(kind, versions), func(ctx context.Context, in *catalog) (*meta.RESTMapping, error) {
		return in.RESTMappingWithContext(ctx, kind, versions...)
	})
}

// RESTMappings implements meta.RESTMapper.
func (m *Mapper) RESTMappings(kind schema.GroupKind, versions ...string) ([]*meta.RESTMapping, error) {
	return find(m, kindQuery(kind, versions), func(ctx context.Context, in *catalog) ([]*meta.RESTMapping, error) {
		return in.RESTMappingsWithContext(ctx, kind, versions...)
	})
}

// ResourceSingularizer implements meta.RESTMapper. On an error it returns the
// resource as it is.
func (m *Mapper) ResourceSingularizer(resource string) (string, error) {
	partial := schema.GroupVersionResource{Resource: resource}
	return find(m, queryOf(partial), func(ctx context.Context, in *catalog) (string, error) {
		singular, err := in.ResourceSingularizerWithContext(ctx, resource)
		if err == nil && singular == "" { // Nothing is known yet.
			err = &meta.NoResourceMatchError{PartialResource: partial}
		}
		if err != nil {
			return resource, err
		}
		return singular, nil
	})
}

// find looks something up. If it is not found, it sends requests as long as they
// may find it.
func find[T any](m *Mapper, q query, in func(context.Context, *catalog) (T, error)) (T, error) {
	s := search{query: q, since: m.begun.Load()}
	for {
		known := m.known.Load()
		found, err := in(context.Background(), known.catalog)
		if !meta.IsNoMatchError(err) {
			return found, err
		}
		again, failed := m.request(&s, known)
		switch {
		case failed != nil:
			return found, failed
		case !again:
			return found, known.matchError(q, err)
		}
	}
}
