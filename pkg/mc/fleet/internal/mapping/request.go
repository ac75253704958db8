// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package mapping

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	// requestTimeout bounds one request.
	requestTimeout = 30 * time.Second
	// burst is how many requests for the same missing kind are sent without a
	// pause. A new kind is often served shortly before discovery lists it.
	burst = 5
	// pause is the time between two requests after that.
	pause = time.Second
)

// request is a request under way. Its error may be read when done is closed.
type request struct {
	number int64
	done   chan struct{}
	err    error
}

// search is one lookup.
type search struct {
	query
	since   int64 // the number of the last request when it began
	allowed bool
}

// request requests what the search needs next, or waits for such a request that is
// under way. It reports whether the lookup should be repeated: not if no request
// would help, or if it was sent a short time ago.
func (m *Mapper) request(s *search, known *snapshot) (again bool, err error) {
	t, repeated, ok := known.next(s.query, s.since)
	if !ok {
		return false, nil
	}
	m.mu.Lock()
	r, ok := m.requests[t]
	if ok {
		m.mu.Unlock()
		<-r.done
		return true, r.err
	}
	if m.known.Load() != known { // A request has just ended.
		m.mu.Unlock()
		return true, nil
	}
	if repeated && !s.allowed {
		if !m.allow(s.query) {
			m.mu.Unlock()
			return false, nil
		}
		s.allowed = true
	}
	r = &request{number: m.begun.Add(1), done: make(chan struct{}), err: errors.New("discovery panicked")}
	m.requests[t] = r
	m.mu.Unlock()
	m.perform(r, t, known.unresolved(s.query))
	return true, r.err
}

// allow reports whether the query may be requested again: in a burst, then once per
// pause. The lock must be held.
func (m *Mapper) allow(q query) bool {
	now := time.Now()
	for other, until := range m.allowedAt {
		if until.Before(now) {
			delete(m.allowedAt, other)
		}
	}
	until, ok := m.allowedAt[q]
	if !ok {
		until = now
	}
	if until.Sub(now) > (burst-1)*pause {
		return false
	}
	m.allowedAt[q] = until.Add(pause)
	return true
}

// update returns the snapshot after a request.
type update func(*snapshot) *snapshot

// perform sends the request and updates the snapshot.
func (m *Mapper) perform(r *request, t target, unresolved []schema.GroupVersion) {
	var apply update
	defer func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		if r.err == nil {
			next := apply(m.known.Load())
			next.catalog = m.store.catalogOf(next.documents, next.extra)
			m.known.Store(next)
		}
		delete(m.requests, t)
		close(r.done)
	}()
	ctx, cancel := context.WithTimeout(context.Background(), requestTimeout)
	defer cancel()
	if t.documents {
		apply, r.err = m.readDocuments(ctx, r.number)
	} else {
		apply, r.err = m.readVersions(ctx, r.number, unresolved), nil
	}
}

// readDocuments reads all groups and, from most servers, their resources.
func (m *Mapper) readDocuments(ctx context.Context, number int64) (update, error) {
	documents := make([]*document, 2)
	both, ctx := errgroup.WithContext(ctx)
	for i, path := range []string{corePath, groupsPath} {
		both.Go(func() (err error) {
			documents[i], err = m.readDocument(ctx, path)
			return err
		})
	}
	if err := both.Wait(); err != nil {
		return nil, fmt.Errorf("cannot discover the API groups: %w", err)
	}
	if len(documents[0].groups)+len(documents[1].groups) == 0 {
		return nil, errors.New("the server lists no API groups")
	}
	return func(known *snapshot) *snapshot { return known.withDocuments(documents, number) }, nil
}

func (m *Mapper) readDocument(ctx context.Context, path string) (*document, error) {
	var contentType string
	body, err := m.client.RESTClient().Get().AbsPath(path).SetHeader("Accept", accept).
		Do(ctx).ContentType(&contentType).Raw()
	if path == corePath && apierrors.IsNotFound(err) {
		return &document{}, nil // An API server without the core group.
	}
	if err != nil {
		return nil, err
	}
	return m.store.document(path, contentType, body)
}

// readVersions requests group versions one by one. One that is not found has no
// resources.
func (m *Mapper) readVersions(ctx context.Context, number int64, versions []schema.GroupVersion) update {
	responses := map[schema.GroupVersion]response{}
	for _, gv := range versions {
		a := response{read: number, requested: true}
		list, err := m.client.ServerResourcesForGroupVersionWithContext(ctx, gv.String())
		switch {
		case err == nil:
			a.resources = m.store.resourcesOf(gv, list.APIResources)
		case !apierrors.IsNotFound(err):
			a.err = err
		}
		responses[gv] = a
	}
	return func(known *snapshot) *snapshot { return known.withResponses(responses) }
}
