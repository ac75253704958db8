// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"reflect"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

const (
	// bookmarkTime is how long a watch that has sent a bookmark may be silent. API
	// servers send about one per minute.
	bookmarkTime = 2 * time.Minute

	// interruptedTime is how long after an interruption lists count as caused by it.
	interruptedTime = time.Minute

	// freshPoll is how often AwaitFresh looks whether the cluster has responded.
	freshPoll = time.Second
)

// Kind identifies the caches of a kind. Those of Go types, of unstructured objects
// and of metadata are different ones.
type Kind struct {
	object   reflect.Type            // nil for unstructured objects and metadata
	kind     schema.GroupVersionKind // empty for Go types
	metadata bool
}

// KindOf returns the kind of an object or list. The scheme is only needed for lists
// of Go types.
func KindOf(obj runtime.Object, scheme *runtime.Scheme) (Kind, error) {
	_, isList := obj.(client.ObjectList)
	switch obj.(type) {
	case *metav1.PartialObjectMetadata, *metav1.PartialObjectMetadataList:
		return Kind{kind: itemKind(obj.GetObjectKind().GroupVersionKind(), isList), metadata: true}, nil
	case runtime.Unstructured:
		return Kind{kind: itemKind(obj.GetObjectKind().GroupVersionKind(), isList)}, nil
	}
	if !isList {
		return Kind{object: reflect.TypeOf(obj)}, nil
	}
	gvk, err := apiutil.GVKForObject(obj, scheme)
	if err != nil {
		return Kind{}, err
	}
	item, err := scheme.New(itemKind(gvk, true))
	if err != nil {
		return Kind{}, err
	}
	return Kind{object: reflect.TypeOf(item)}, nil
}

func itemKind(gvk schema.GroupVersionKind, isList bool) schema.GroupVersionKind {
	if isList {
		gvk.Kind = strings.TrimSuffix(gvk.Kind, "List")
	}
	return gvk
}

// String returns the name of the kind for errors, if that of the resource is not known.
func (k Kind) String() string {
	if k.object != nil {
		return fmt.Sprint(k.object)
	}
	return k.kind.Kind + "." + k.kind.Group
}

// Freshness is what is known of the caches of a kind. If there are several, as for
// several namespaces, it is that of the oldest.
type Freshness struct {
	// Resource is the resource with its group, such as deployments.apps.
	Resource string
	// InStep is the latest time at which the cache is known to have been in step,
	// zero if it was never filled.
	InStep time.Time
	// WatchOpen is whether there is a watch whose initial list is complete.
	WatchOpen bool
	// Err is why there is no watch, nil if that is not known.
	Err error
	// FreshFor is for how long all of the caches are fresh, negative if one is not.
	FreshFor time.Duration
}

// Freshness returns the freshness of a kind, and false if there is no cache of it. A
// cache is fresh if it was in step within maxAge, and was not filled again within
// maxAge after an interruption.
func (s *Set) Freshness(kind Kind, maxAge time.Duration) (oldest Freshness, ok bool) {
	if s == nil {
		return Freshness{}, false
	}
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, st := range s.runningLocked() {
		if st.kind != kind {
			continue
		}
		f := st.freshnessLocked(now, maxAge)
		if !ok {
			oldest, ok = f, true
			continue
		}
		freshFor := min(oldest.FreshFor, f.FreshFor)
		if f.InStep.Before(oldest.InStep) {
			oldest = f
		}
		oldest.FreshFor = freshFor
	}
	return oldest, ok
}

func (st *stream) freshnessLocked(now time.Time, maxAge time.Duration) Freshness {
	f := Freshness{
		Resource: st.resource, InStep: st.inStepLocked(now), Err: st.err, FreshFor: -1,
		WatchOpen: st.open != nil && !st.open.listing,
	}
	if st.set.held && f.Err == nil {
		f.Err = errHeld
	}
	if !f.InStep.IsZero() && (st.gap <= maxAge || now.Sub(st.relisted) >= maxAge) {
		f.FreshFor = maxAge - now.Sub(f.InStep)
	}
	return f
}

// AwaitFresh returns when the caches of a kind can be used, or the context ends.
func (s *Set) AwaitFresh(ctx context.Context, kind Kind, maxAge time.Duration) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		s.mu.Lock()
		changed := s.changed
		s.mu.Unlock()
		if f, ok := s.Freshness(kind, maxAge); ok && f.FreshFor >= 0 {
			return
		}
		timer.Reset(freshPoll)
		select {
		case <-ctx.Done():
			return
		case <-changed:
		case <-timer.C:
		}
	}
}

// Interrupted notes that the cluster is engaged again: the first lists follow an
// interruption.
func (s *Set) Interrupted() {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.interrupted = time.Now()
}

// Contacted notes that the cluster has sent data in response to any request.
func (s *Set) Contacted() {
	if s != nil {
		s.contact.note()
	}
}

// inStepLocked returns the latest time at which the cache is known to have been in
// step: when there was data of its open watch or, on the same connection, a response
// to another request.
func (st *stream) inStepLocked(now time.Time) time.Time {
	b := st.open
	if b == nil || b.listing {
		return st.inStep
	}
	proof, ok := b.data.settled(now)
	if !ok {
		if st.inStep.IsZero() {
			return b.data.start // the initial list has just been completed
		}
		return st.inStep
	}
	contact, _ := st.set.contact.settled(now)
	if limit := b.data.at().Add(bookmarkTime); b.bookmarks.Load() && contact.After(limit) {
		contact = limit
	}
	proof = later(proof, contact)
	if st.set.held && proof.After(st.set.heldAt) {
		proof = st.set.heldAt // what it sends is of no use, as by an API server without storage
	}
	return later(st.inStep, proof)
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// listSentLocked notes that a list is requested that replaces the content of the cache.
func (st *stream) listSentLocked() {
	now := time.Now()
	gap, responded := now.Sub(st.inStep), st.responded
	if responded.Before(st.ended) {
		responded = now
	}
	switch {
	case st.relist, !st.ended.IsZero() && responded.Sub(st.ended) > gapTolerance, st.since.Sub(st.set.interrupted) < interruptedTime && st.inStep.IsZero():
		gap = math.MaxInt64
	case st.inStep.IsZero():
		gap = 0 // the first list
	}
	if st.listing || now.Sub(st.relisted) < interruptedTime {
		gap = max(gap, st.gap) // the same interruption
	}
	st.listing, st.gap, st.relisted = true, gap, now
}

// respondedLocked notes that the API server has responded to a list or watch. A
// reflector may wait before it lists again.
func (st *stream) respondedLocked() {
	if st.responded.Before(st.ended) {
		st.responded = time.Now()
	}
}

// completeLocked notes that the watch has no initial list, or that it is complete.
func (st *stream) completeLocked(b *watchBody) {
	b.data = newActivity()
	if st.listing {
		st.listing, st.relisted = false, b.data.start
	}
}

// endedLocked notes that the watch has ended.
func (st *stream) endedLocked(b *watchBody) {
	now := time.Now()
	st.inStep = st.inStepLocked(now)
	if _, ok := b.data.settled(now); ok && !b.listing || st.ended.IsZero() {
		st.ended = now
	}
}

// findBookmark looks for a bookmark, which shows that the API server sends them.
func (b *watchBody) findBookmark(data []byte) {
	if !b.bookmarks.Load() && bytes.Contains(data, []byte("BOOKMARK")) {
		b.bookmarks.Store(true)
	}
}
