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
	// requestTimeout bounds what one lookup waits for one answer.
	requestTimeout = 30 * time.Second
	// burst is how often a cluster is asked for the same missing thing without
	// a pause. Who waits for a new kind often sees it served shortly before
	// discovery tells of it.
	burst = 5
	// pause is the time between two requests after that.
	pause = time.Second
)

// request is one that is under way. Its error may be read once done is closed.
type request struct {
	number int64
	done   chan struct{}
	err    error
}

// search is one lookup.
type search struct {
	question
	since     int64 // the number of the last request when it began
	permitted bool
}

// ask has the cluster asked, or waits for an answer that is on its way, and
// tells whether it did. It did not if that would not help, or not be right so
// soon after the last time.
func (m *Mapper) ask(s *search, known *knowledge) (asked bool, err error) {
	about, again, ok := known.next(s.question, s.since)
	if !ok {
		return false, nil
	}
	m.mu.Lock()
	r, ok := m.requests[about]
	if ok {
		m.mu.Unlock()
		<-r.done
		return true, r.err
	}
	if m.known.Load() != known { // A request has ended meanwhile.
		m.mu.Unlock()
		return true, nil
	}
	if again && !s.permitted {
		if !m.permit(s.question) {
			m.mu.Unlock()
			return false, nil
		}
		s.permitted = true
	}
	r = &request{number: m.begun.Add(1), done: make(chan struct{}), err: errors.New("discovery has panicked")}
	m.requests[about] = r
	m.mu.Unlock()
	m.perform(r, about, known.untold(s.question))
	return true, r.err
}

// permit tells whether the cluster may be asked again what it could not answer:
// in a burst, then once in a pause. The lock is held.
func (m *Mapper) permit(q question) bool {
	now := time.Now()
	for other, until := range m.permitted {
		if until.Before(now) {
			delete(m.permitted, other)
		}
	}
	until, ok := m.permitted[q]
	if !ok {
		until = now
	}
	if until.Sub(now) > (burst-1)*pause {
		return false
	}
	m.permitted[q] = until.Add(pause)
	return true
}

// lesson makes what is known from what was known.
type lesson func(*knowledge) *knowledge

// perform asks the cluster. When it returns, what the answer tells is known.
func (m *Mapper) perform(r *request, about topic, untold []schema.GroupVersion) {
	var learn lesson
	defer func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		if r.err == nil {
			next := learn(m.known.Load())
			next.catalog = m.store.catalogOf(next.documents, next.besides)
			m.known.Store(next)
		}
		delete(m.requests, about)
		close(r.done)
	}()
	ctx, cancel := context.WithTimeout(context.Background(), requestTimeout)
	defer cancel()
	if about.documents {
		learn, r.err = m.readDocuments(ctx, r.number)
	} else {
		learn, r.err = m.readVersions(ctx, r.number, untold), nil
	}
}

// readDocuments reads what all groups are, and, of most servers, what is in
// them.
func (m *Mapper) readDocuments(ctx context.Context, number int64) (lesson, error) {
	documents := make([]*document, 2)
	both, ctx := errgroup.WithContext(ctx)
	for i, path := range []string{corePath, groupsPath} {
		both.Go(func() (err error) {
			documents[i], err = m.readDocument(ctx, path)
			return err
		})
	}
	if err := both.Wait(); err != nil {
		return nil, fmt.Errorf("cannot get what the server serves: %w", err)
	}
	if len(documents[0].groups)+len(documents[1].groups) == 0 {
		return nil, errors.New("the server says that it serves nothing")
	}
	return func(known *knowledge) *knowledge { return known.withDocuments(documents, number) }, nil
}

func (m *Mapper) readDocument(ctx context.Context, path string) (*document, error) {
	var contentType string
	body, err := m.client.RESTClient().Get().AbsPath(path).SetHeader("Accept", accept).
		Do(ctx).ContentType(&contentType).Raw()
	if path == corePath && apierrors.IsNotFound(err) {
		return &document{}, nil // An API server that has other groups alone.
	}
	if err != nil {
		return nil, err
	}
	return m.store.document(path, contentType, body)
}

// readVersions asks for group versions one by one. One that is not found serves
// nothing.
func (m *Mapper) readVersions(ctx context.Context, number int64, versions []schema.GroupVersion) lesson {
	answers := map[schema.GroupVersion]answer{}
	for _, gv := range versions {
		a := answer{read: number, asked: true}
		list, err := m.client.ServerResourcesForGroupVersionWithContext(ctx, gv.String())
		switch {
		case err == nil:
			a.resources = m.store.resourcesOf(gv, list.APIResources)
		case !apierrors.IsNotFound(err):
			a.err = err
		}
		answers[gv] = a
	}
	return func(known *knowledge) *knowledge { return known.withAnswers(answers) }
}
