// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package execplugin

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/rollcall-dev/rollcall/pkg/credentials/internal/authn"
	"github.com/rollcall-dev/rollcall/pkg/credentials/internal/errdefs"
)

// rank orders the runs of a provider that wait for a slot. Each rank may hold a
// quarter of the slots less than the one before it, so that runs which hang
// leave slots for those that probably do not.
type rank int

const (
	renewal     rank = iota // the last run gave a credential, or failed quickly
	firstRun                // not known yet
	lateRenewal             // the last run hung, and there is still a valid credential
	retry                   // the last run hung
	ranks
)

const (
	// hungAfter is how long a run that was stopped must have taken to count as hung:
	// not all requests wait for the timeout.
	hungAfter = time.Second

	// hungMemory is how long a hung run is remembered: longer than any backoff,
	// also if the credential has had no users in between.
	hungMemory = 10 * time.Minute
)

// slots limits the number of runs at the same time, for each provider alone: no
// provider waits for the plugin of another.
type slots struct {
	limits [ranks]int // of the runs of a rank and those after it

	mu     sync.Mutex // guards what follows
	queues map[string]*queue
	hung   map[string]time.Time // when runs hung last, by the digest of their Invocation
}

// queue has the runs of one provider. It exists while there are any.
type queue struct {
	running [ranks]int
	waiting [ranks][]chan struct{} // each is closed when the run gets its slot
}

// newSlots returns slots with the number of runs for each provider. It must be
// positive.
func newSlots(perProvider int) *slots {
	s := &slots{queues: map[string]*queue{}, hung: map[string]time.Time{}}
	for r := range s.limits {
		s.limits[r] = max(1, perProvider*(int(ranks)-r)/int(ranks))
	}
	return s
}

// acquire waits for a slot of the provider, which release returns. It returns
// ErrNotRun if the context ends before.
func (s *slots) acquire(ctx context.Context, provider string, r rank) (release func(), err error) {
	if ctx.Err() != nil {
		return nil, authn.ErrNotRun
	}
	granted := make(chan struct{})
	s.update(provider, func(q *queue) { q.waiting[r] = append(q.waiting[r], granted) })
	release = func() { s.update(provider, func(q *queue) { q.running[r]-- }) }
	select {
	case <-granted:
		return release, nil
	case <-ctx.Done():
	}
	s.update(provider, func(q *queue) {
		if i := slices.Index(q.waiting[r], granted); i >= 0 {
			q.waiting[r] = slices.Delete(q.waiting[r], i, i+1)
		} else {
			q.running[r]-- // granted at that moment
		}
	})
	return nil, authn.ErrNotRun
}

// update changes the queue of the provider, then gives out the slots that are
// free.
func (s *slots) update(provider string, change func(*queue)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.queues[provider]
	if q == nil {
		q = &queue{}
		s.queues[provider] = q
	}
	change(q)
	for r := range ranks {
		for len(q.waiting[r]) > 0 && s.fits(q, r) {
			close(q.waiting[r][0])
			q.waiting[r] = slices.Delete(q.waiting[r], 0, 1)
			q.running[r]++
		}
	}
	if q.running == [ranks]int{} {
		delete(s.queues, provider) // then none waits
	}
}

// fits reports whether another run of the rank may start.
func (s *slots) fits(q *queue, r rank) bool {
	running := 0
	for i := ranks - 1; i >= 0; i-- {
		running += q.running[i]
		if i <= r && running >= s.limits[i] {
			return false
		}
	}
	return true
}

// rankOf returns the rank of a run: its Invocation's digest, and the last
// credential that it gave, or nil.
func (s *slots) rankOf(key string, last *authn.Credential) rank {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	at, hung := s.hung[key]
	hung = hung && now.Sub(at) < hungMemory
	switch {
	case hung && last.IsValid(now):
		return lateRenewal
	case hung:
		return retry
	case last != nil:
		return renewal
	}
	return firstRun
}

// note remembers how a run ended.
func (s *slots) note(key string, took time.Duration, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	stopped := took >= hungAfter && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded))
	if !stopped && !errors.Is(err, errdefs.ErrTimeout) {
		delete(s.hung, key)
		return
	}
	now := time.Now()
	s.hung[key] = now
	for other, at := range s.hung {
		if now.Sub(at) >= hungMemory {
			delete(s.hung, other)
		}
	}
}
