// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"time"

	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// maxCheckBody is how large the response to a check may be: one object.
const maxCheckBody = 4 << 20

// gatherTime is how long the first request that needs a check waits for others: all
// watches of a connection end at about the same time.
const gatherTime = 10 * time.Millisecond

// versionCheck is a request for the cluster's resource version.
type versionCheck struct {
	// The set's lock guards these two.
	sent   bool
	losses int // that happened before it was sent

	done    chan struct{} // closed when version and err are set
	version string        // "" if it cannot be read
	err     error
}

// compare returns errRestored if the cluster has an earlier resource version than
// the request needs. It asks the cluster only if a connection was lost since the
// stream's last request.
func (st *stream) compare(q *query, next http.RoundTripper) error {
	s := st.set
	s.mu.Lock()
	if q.lists() {
		st.listSentLocked()
	}
	losses, relist := s.losses, st.relist
	if !q.resumes() {
		if !q.page {
			st.relist, st.checked = false, losses
		}
		s.mu.Unlock()
		return nil
	}
	checked := st.checked == losses
	s.mu.Unlock()
	switch {
	case relist:
		return errRestored
	case checked:
		return nil
	}
	version, err := s.version(q, next, losses)
	if err != nil {
		return err
	}
	if earlier(version, q.version) || version == "" {
		// The kind may be stored elsewhere, with resource versions of its own.
		if version, err = ask(q, next, q.ownCollection()); err != nil {
			return err
		}
		if earlier(version, q.version) {
			s.restored(version, q)
			return errRestored
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if st.relist {
		return errRestored
	}
	st.checked = losses
	return nil
}

// version returns the cluster's resource version after so many losses. One
// goroutine asks for all.
func (s *Set) version(q *query, next http.RoundTripper, losses int) (string, error) {
	ctx := q.request.Context()
	for {
		check, mine := s.joinCheck(losses)
		if mine {
			s.run(check, q, next)
			return check.version, check.err
		}
		select {
		case <-ctx.Done():
			return "", ctx.Err()
		case <-check.done:
		}
		if !errors.Is(check.err, context.Canceled) { // of the goroutine that asked
			return check.version, check.err
		}
	}
}

// joinCheck returns a check after so many losses, and whether the caller must run it.
func (s *Set) joinCheck(losses int) (check *versionCheck, mine bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if check = s.latest; check != nil && (!check.sent || check.losses >= losses) {
		return check, false
	}
	s.latest = &versionCheck{done: make(chan struct{})}
	return s.latest, true
}

func (s *Set) run(check *versionCheck, q *query, next http.RoundTripper) {
	defer close(check.done)
	timer := time.NewTimer(gatherTime)
	defer timer.Stop()
	select {
	case <-timer.C:
		s.mu.Lock()
		check.sent, check.losses = true, s.losses
		s.mu.Unlock()
		check.version, check.err = ask(q, next, q.systemNamespace())
		if _, failed := errors.AsType[*statusError](check.err); failed {
			check.err = nil // the kind is asked instead
		}
	case <-q.request.Context().Done():
		check.err = context.Canceled
	}
	if check.err != nil {
		s.forget(check)
	}
}

func (s *Set) forget(check *versionCheck) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.latest == check {
		s.latest = nil
	}
}

// restored makes all informers list again.
func (s *Set) restored(version string, q *query) {
	s.log.Info("Cluster has been restored to an earlier state, listing all objects again",
		"resource", q.resource, "resourceVersion", version, "cachedResourceVersion", q.version)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, st := range s.runningLocked() {
		st.relist = true
		if st.open != nil {
			st.open.interrupt()
		}
	}
}

// earlier reports whether a is known to be an earlier resource version than b.
func earlier(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order < 0
}

// ask returns the resource version of a list, "" if the API server denies it.
func ask(q *query, next http.RoundTripper, u *url.URL) (string, error) {
	request := q.request.Clone(q.request.Context())
	request.URL = u
	request.Header.Set("Accept", "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json")
	response, err := next.RoundTrip(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxCheckBody))
	switch {
	case err != nil:
		return "", err
	case response.StatusCode == http.StatusUnauthorized || response.StatusCode >= http.StatusInternalServerError || response.StatusCode == http.StatusTooManyRequests:
		return "", &statusError{response.Status}
	case response.StatusCode != http.StatusOK:
		return "", nil
	}
	var list struct {
		Metadata struct {
			ResourceVersion string `json:"resourceVersion"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal(body, &list); err != nil {
		return "", nil //nolint:nilerr // not an API server's list
	}
	return list.Metadata.ResourceVersion, nil
}

// statusError is the response to a list whose resource version was needed.
type statusError struct{ status string }

// Error implements error.
func (e *statusError) Error() string {
	return "cannot read the resource version: the API server responded with " + e.status
}
