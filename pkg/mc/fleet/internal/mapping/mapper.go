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

// Mapper maps kinds and resources of one cluster. It asks the cluster when it
// has to. All methods may be called concurrently.
type Mapper struct {
	store  *store
	client *discovery.DiscoveryClient
	known  atomic.Pointer[knowledge]
	begun  atomic.Int64 // how many requests there have been

	mu        sync.Mutex // guards what follows, and writes to known and begun; never held while the cluster is asked
	requests  map[topic]*request
	permitted map[question]time.Time // see permit
}

// New returns the mapper of the cluster that the config and the client lead to.
// It asks for nothing yet.
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
		requests:  map[topic]*request{},
		permitted: map[question]time.Time{},
	}
	m.known.Store(&knowledge{catalog: s.catalogOf(nil, nil)})
	return m, nil
}

// KindFor implements meta.RESTMapper.
func (m *Mapper) KindFor(resource schema.GroupVersionResource) (schema.GroupVersionKind, error) {
	return find(m, about(resource), func(ctx context.Context, in *catalog) (schema.GroupVersionKind, error) {
		return in.KindForWithContext(ctx, resource)
	})
}

// KindsFor implements meta.RESTMapper.
func (m *Mapper) KindsFor(resource schema.GroupVersionResource) ([]schema.GroupVersionKind, error) {
	return find(m, about(resource), func(ctx context.Context, in *catalog) ([]schema.GroupVersionKind, error) {
		return in.KindsForWithContext(ctx, resource)
	})
}

// ResourceFor implements meta.RESTMapper.
func (m *Mapper) ResourceFor(resource schema.GroupVersionResource) (schema.GroupVersionResource, error) {
	return find(m, about(resource), func(ctx context.Context, in *catalog) (schema.GroupVersionResource, error) {
		return in.ResourceForWithContext(ctx, resource)
	})
}

// ResourcesFor implements meta.RESTMapper.
func (m *Mapper) ResourcesFor(resource schema.GroupVersionResource) ([]schema.GroupVersionResource, error) {
	return find(m, about(resource), func(ctx context.Context, in *catalog) ([]schema.GroupVersionResource, error) {
		return in.ResourcesForWithContext(ctx, resource)
	})
}

// RESTMapping implements meta.RESTMapper.
func (m *Mapper) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	return find(m, aboutKind(kind, versions), func(ctx context.Context, in *catalog) (*meta.RESTMapping, error) {
		return in.RESTMappingWithContext(ctx, kind, versions...)
	})
}

// RESTMappings implements meta.RESTMapper.
func (m *Mapper) RESTMappings(kind schema.GroupKind, versions ...string) ([]*meta.RESTMapping, error) {
	return find(m, aboutKind(kind, versions), func(ctx context.Context, in *catalog) ([]*meta.RESTMapping, error) {
		return in.RESTMappingsWithContext(ctx, kind, versions...)
	})
}

// ResourceSingularizer implements meta.RESTMapper. On an error it returns the
// resource as it is.
func (m *Mapper) ResourceSingularizer(resource string) (string, error) {
	partial := schema.GroupVersionResource{Resource: resource}
	return find(m, about(partial), func(ctx context.Context, in *catalog) (string, error) {
		singular, err := in.ResourceSingularizerWithContext(ctx, resource)
		if err == nil && singular == "" { // Nothing is known at all.
			err = &meta.NoResourceMatchError{PartialResource: partial}
		}
		if err != nil {
			return resource, err
		}
		return singular, nil
	})
}

// find looks something up, and has the cluster asked for as long as that may
// turn up what is not found.
func find[T any](m *Mapper, q question, in func(context.Context, *catalog) (T, error)) (T, error) {
	s := search{question: q, since: m.begun.Load()}
	for {
		known := m.known.Load()
		found, err := in(context.Background(), known.catalog)
		if !meta.IsNoMatchError(err) {
			return found, err
		}
		asked, failed := m.ask(&s, known)
		switch {
		case failed != nil:
			return found, failed
		case !asked:
			return found, known.explain(q, err)
		}
	}
}
