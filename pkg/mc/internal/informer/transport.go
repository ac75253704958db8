// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
)

// maxErrorBody is how much of the body of an error response is read.
const maxErrorBody = 64 << 10

// errRestored means that the cluster is in an earlier state than the cache.
var errRestored = errors.New("the cluster has an earlier resource version than its cache, it has been restored")

// Transport returns a transport that carries out the requests of the set's
// informers with the next one, and passes on all others.
func (s *Set) Transport(next http.RoundTripper) http.RoundTripper {
	return &transport{set: s, next: next}
}

type transport struct {
	set  *Set
	next http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(request *http.Request) (*http.Response, error) {
	st, ok := request.Context().Value(streamKey{}).(*stream)
	if !ok || st.set != t.set || request.Method != http.MethodGet {
		return t.next.RoundTrip(request)
	}
	q := newQuery(request)
	st.begin(q)
	defer st.end()
	if !q.watch {
		return st.send(q, t.next)
	}
	st.pace(request.Context())
	response, err := st.send(q, t.next)
	if err != nil || response.StatusCode != http.StatusOK {
		return response, err
	}
	body := &watchBody{
		stream: st, query: q, next: t.next, began: time.Now(), initial: q.initial, inner: response.Body, done: make(chan struct{}),
	}
	st.opened(body)
	response.Body = body
	return response, nil
}

// send sends the request until there is a response that the reflector can handle.
func (st *stream) send(q *query, next http.RoundTripper) (*http.Response, error) {
	ctx, backoff := q.request.Context(), newBackoff()
	for {
		resumed, err := st.set.released(ctx)
		if err != nil {
			return nil, err
		}
		response, err := st.attempt(q, next)
		if ctx.Err() != nil || errors.Is(err, errRestored) {
			return response, err
		}
		failure, answered := err, err == nil
		if answered {
			if failure, err = failureOf(q, response); err != nil {
				return nil, err
			}
		} else {
			_, answered = errors.AsType[*statusError](err)
		}
		st.attempted(response, failure, answered)
		if failure == nil {
			return response, nil
		}
		timer := time.NewTimer(max(backoff.Step(), retryAfter(response)))
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil, ctx.Err()
		case <-resumed:
			timer.Stop()
			backoff = newBackoff()
		case <-timer.C:
		}
	}
}

// retryAfter returns the delay that the API server asks for, maxRestartDelay at most.
func retryAfter(response *http.Response) time.Duration {
	if response == nil {
		return 0
	}
	seconds, err := strconv.Atoi(response.Header.Get("Retry-After"))
	if err != nil || seconds < 0 {
		return 0
	}
	return time.Duration(min(seconds, int(maxRestartDelay/time.Second))) * time.Second
}

// pace delays a watch after others that have ended at once, or until Resume.
func (st *stream) pace(ctx context.Context) {
	s := st.set
	s.mu.Lock()
	short, resumed := st.short, s.resumed
	s.mu.Unlock()
	if short < 2 {
		return
	}
	delay := min(restartDelay<<min(short-2, 16), maxRestartDelay)
	timer := time.NewTimer(wait.Jitter(delay, 0.5))
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-resumed:
	case <-timer.C:
	}
}

// newBackoff returns the delays between attempts.
func newBackoff() wait.Backoff {
	return wait.Backoff{Duration: 200 * time.Millisecond, Factor: 2, Jitter: 0.5, Steps: 20, Cap: 30 * time.Second}
}

// attempt sends the request once, unless the cluster is in an earlier state than
// the request presumes.
func (st *stream) attempt(q *query, next http.RoundTripper) (*http.Response, error) {
	if err := st.compare(q, next); err != nil {
		return nil, err
	}
	return next.RoundTrip(q.request)
}

// failureOf returns why the request is sent again, after closing the response, or
// nil. The other error is errRestored or nil.
func failureOf(q *query, response *http.Response) (failure, err error) {
	switch response.StatusCode {
	case http.StatusUnauthorized, http.StatusInternalServerError, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
	default:
		return nil, nil
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxErrorBody))
	if err != nil {
		return err, nil
	}
	// The text is the same in JSON and in Protobuf.
	if q.resumes() && (bytes.Contains(text, []byte(metav1.CauseTypeResourceVersionTooLarge)) || bytes.Contains(text, []byte("Too large resource version"))) {
		return nil, errRestored
	}
	return responseError(response), nil
}

func responseError(response *http.Response) error {
	return fmt.Errorf("the API server responded with %s", response.Status)
}

// released waits while the set is held. The channel is closed when a request that
// has failed since should be sent again at once.
func (s *Set) released(ctx context.Context) (resumed <-chan struct{}, err error) {
	for {
		s.mu.Lock()
		held, resumed := s.held, s.resumed
		s.mu.Unlock()
		if !held {
			return resumed, ctx.Err()
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-resumed:
		}
	}
}

// begin notes that a request is under way.
func (st *stream) begin(q *query) {
	st.set.mu.Lock()
	defer st.set.mu.Unlock()
	st.resource, st.waiting = q.resource, true
}

func (st *stream) end() {
	st.set.mu.Lock()
	defer st.set.mu.Unlock()
	st.waiting = false
}

// attempted notes the result of an attempt.
func (st *stream) attempted(response *http.Response, failure error, answered bool) {
	s := st.set
	s.mu.Lock()
	before, resource := st.err, st.resource
	st.err, st.answered = failure, failure != nil && answered
	if failure == nil {
		st.respondedLocked()
	}
	switch {
	case !answered:
		s.losses++
	case failure != nil:
	case response.StatusCode != http.StatusOK:
		st.err, st.answered = responseError(response), true
	case before != nil:
		s.resumeLocked() // others may succeed as well
	}
	s.changedLocked()
	s.mu.Unlock()
	if failure != nil && before == nil {
		s.log.Info("Watch failed, retrying", "resource", resource, "error", failure.Error())
	}
}

// opened notes that the stream has a watch.
func (st *stream) opened(body *watchBody) {
	now := time.Now()
	st.set.mu.Lock()
	defer st.set.mu.Unlock()
	body.opened, body.listing = now, body.initial
	body.data = newActivity()
	body.bookmarks.Store(false)
	if !body.listing {
		st.completeLocked(body)
	}
	st.open, st.err, st.answered = body, nil, false
	if st.relist {
		body.interrupt() // the cluster was found to be restored in the meantime
	}
	st.set.changedLocked()
}

// closed notes that the watch has ended.
func (st *stream) closed(body *watchBody, lost bool) {
	s := st.set
	s.mu.Lock()
	defer s.mu.Unlock()
	if lost {
		s.losses++
	}
	if st.open == body {
		st.endedLocked(body)
		st.open, st.since = nil, time.Now()
		switch {
		case st.since.Sub(body.opened) >= shortWatch:
			st.short = 0
		case lost:
			st.short++
		}
	}
	s.changedLocked()
}
