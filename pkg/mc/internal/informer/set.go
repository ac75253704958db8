// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/tools/cache"
)

const (
	// gapTolerance is how long a watch may be closed, as between two watches,
	// before its cache counts as behind.
	gapTolerance = time.Second

	// settleTime is how long a watch that was opened again must be silent before
	// its cache counts as in step, and maxSettleTime bounds the wait for that.
	settleTime    = 50 * time.Millisecond
	maxSettleTime = time.Second
)

var errHeld = errors.New("the cluster does not respond")

// Set has the informers of one cluster. Its methods may be called concurrently. A
// nil Set is one without informers.
type Set struct {
	log     logr.Logger
	contact *activity // all data of the cluster

	mu      sync.Mutex // guards what follows, and the state of all streams
	streams []*stream
	held    bool
	heldAt  time.Time
	resumed chan struct{} // closed to wake the requests that wait, and replaced
	changed chan struct{} // closed when a stream has changed, and replaced
	// losses counts the connections lost, each of which may lead to a restored
	// cluster. latest is the last request that asked for the cluster's version.
	losses      int
	latest      *versionCheck
	interrupted time.Time // zero if this is the first engagement
}

// NewSet returns an empty set.
func NewSet(logger logr.Logger) *Set {
	return &Set{log: logger, contact: newActivity(), resumed: make(chan struct{}), changed: make(chan struct{})}
}

// stream is what an informer reads from the cluster. The set's lock guards it, but
// for the first three fields.
type stream struct {
	set      *Set
	informer cache.SharedIndexInformer
	kind     Kind

	resource  string      // as in URLs, with its group; "" before the first request
	open      *watchBody  // the watch, nil if there is none
	since     time.Time   // when the last watch has ended
	err       error       // why there is no watch; nil if there is one or it is not known
	answered  bool        // err is a response of the API server
	waiting   bool        // a request is under way
	denied    error       // of the last list
	observers []*observer // of denied
	short     int         // how many watches in a row have ended at once
	relist    bool        // what the cache has is of no use for watches
	checked   int         // the losses after which the cluster's version was compared

	inStep    time.Time     // when the cache is known to have been in step, by watches that have ended
	ended     time.Time     // when the last watch ended whose data counted
	responded time.Time     // when there was a response after that
	listing   bool          // the last list is not complete
	relisted  time.Time     // when the last list was sent or, later, complete
	gap       time.Duration // for how long the cache was not in step before it
}

type streamKey struct{}

func newStream(s *Set, kind Kind) *stream { return &stream{set: s, kind: kind, since: time.Now()} }

func (s *Set) add(st *stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.streams = append(s.runningLocked(), st)
}

// runningLocked returns the streams of informers that have not been stopped.
func (s *Set) runningLocked() []*stream {
	s.streams = slices.DeleteFunc(s.streams, func(st *stream) bool { return st.informer.IsStopped() })
	return s.streams
}

// Hold keeps all lists and watches that are not open waiting until Resume.
func (s *Set) Hold() {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.held {
		s.held, s.heldAt = true, time.Now()
	}
}

// Responded sends all requests that wait at once if one of them got no response: the
// cluster has responded to another one.
func (s *Set) Responded() {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if slices.ContainsFunc(s.streams, func(st *stream) bool { return st.waiting && st.err != nil && !st.answered }) {
		s.resumeAllLocked()
	}
}

// Resume sends all requests that wait at once.
func (s *Set) Resume() {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.resumeAllLocked()
}

func (s *Set) resumeAllLocked() {
	s.held = false
	for _, st := range s.streams {
		if st.waiting {
			st.err, st.answered = nil, false
		}
	}
	s.resumeLocked()
}

func (s *Set) resumeLocked() {
	close(s.resumed)
	s.resumed = make(chan struct{})
	s.changedLocked()
}

func (s *Set) changedLocked() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// Lag is a cache that is behind its cluster.
type Lag struct {
	// Resource is the resource with its group, such as deployments.apps.
	Resource string
	// Since is when its watch ended.
	Since time.Time
	// Err is why there is no watch, nil if that is not known.
	Err error
}

// Behind returns the caches that are behind, one for each resource, sorted.
func (s *Set) Behind() []Lag {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var lags []Lag
	for _, st := range s.runningLocked() {
		lag := Lag{Resource: cmp.Or(st.resource, "unknown"), Since: st.since, Err: st.err}
		open := st.open != nil && !st.open.listing
		switch {
		case s.held:
			lag.Err = cmp.Or(lag.Err, errHeld)
			if open {
				lag.Since = s.heldAt
			}
		case open, st.err == nil && time.Since(st.since) < gapTolerance:
			continue
		}
		lags = append(lags, lag)
	}
	slices.SortStableFunc(lags, func(a, b Lag) int {
		return cmp.Or(cmp.Compare(a.Resource, b.Resource), a.Since.Compare(b.Since))
	})
	return slices.CompactFunc(lags, func(a, b Lag) bool { return a.Resource == b.Resource })
}

// Describe returns which caches are behind and why, "" if there are none.
func Describe(lags []Lag) string {
	if len(lags) == 0 {
		return ""
	}
	texts := make([]string, len(lags))
	for i, lag := range lags {
		texts[i] = lag.Resource
		if lag.Err != nil {
			texts[i] += ": " + lag.Err.Error()
		}
	}
	return "caches behind the cluster: " + strings.Join(texts, "; ")
}

// Await returns when all caches are in step, except those for which the API server
// has responded with an error since Resume, or when the context ends.
func (s *Set) Await(ctx context.Context) {
	if s == nil {
		return
	}
	for {
		again, changed := s.unsettled(time.Now())
		if again < 0 {
			return
		}
		timer := time.NewTimer(again)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-changed:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// WaitForSync returns when all informers have synced, or the context ends.
// controller-runtime's WaitForCacheSync polls.
func (s *Set) WaitForSync(ctx context.Context) {
	if s == nil {
		return
	}
	s.mu.Lock()
	streams := slices.Clone(s.streams)
	s.mu.Unlock()
	for _, st := range streams {
		select {
		case <-st.informer.HasSyncedChecker().Done():
		case <-ctx.Done():
			return
		}
	}
}

// InStep reports whether Await would return at once.
func (s *Set) InStep() bool {
	if s == nil {
		return true
	}
	again, _ := s.unsettled(time.Now())
	return again < 0
}

// unsettled returns when to look again whether all caches are in step, negative if
// they are, and a channel that is closed when a stream has changed before.
func (s *Set) unsettled(now time.Time) (again time.Duration, changed <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	again = -1
	for _, st := range s.runningLocked() {
		again = max(again, st.unsettledLocked(now))
	}
	return again, s.changed
}

func (st *stream) unsettledLocked(now time.Time) time.Duration {
	switch {
	case st.open == nil && st.answered:
		return -1
	case st.open == nil || st.open.listing:
		return time.Hour // until it changes
	}
	quiet := st.open.data.at().Add(settleTime)
	if limit := st.open.opened.Add(maxSettleTime); quiet.After(limit) {
		quiet = limit
	}
	if left := quiet.Sub(now); left > 0 {
		return left
	}
	return -1
}
