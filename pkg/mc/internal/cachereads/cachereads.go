// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Package cachereads records which caches a reconciler reads, so that what it
// concludes from them can be refused when one of them is too old.
package cachereads

import (
	"context"
	"errors"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Cache is a cache of one kind in one cluster. It must be comparable.
type Cache interface {
	// Check returns an error if the cache is too old now.
	Check() error
}

// Waiter is an error after which a request is reconciled again when the channel is
// closed, and without the delay of an error.
type Waiter interface {
	error
	Fresh() <-chan struct{}
}

// Recorder records reads. The zero value is empty. Its methods may be called
// concurrently.
type Recorder struct {
	mu    sync.Mutex // guards reads
	reads map[Cache]error
}

// Add records a read of the cache, which was too old then if the error is not nil.
func (r *Recorder) Add(c Cache, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if before, ok := r.reads[c]; ok && (before != nil || err == nil) {
		return
	}
	if r.reads == nil {
		r.reads = map[Cache]error{}
	}
	r.reads[c] = err
}

// Check returns an error if one of the caches is too old now, or was when it was read.
func (r *Recorder) Check() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for c, err := range r.reads {
		if err != nil {
			return err
		}
		if err := c.Check(); err != nil {
			return err
		}
	}
	return nil
}

type key struct{}

// recording is a context with a recorder. It takes one allocation.
type recording struct {
	context.Context
	recorder Recorder
}

// Value implements context.Context.
func (c *recording) Value(k any) any {
	if k == (key{}) {
		return &c.recorder
	}
	return c.Context.Value(k)
}

// With returns a context for one reconcile, with a recorder.
func With(ctx context.Context) context.Context { return &recording{Context: ctx} }

// From returns the recorder of the context, nil if there is none.
func From(ctx context.Context) *Recorder {
	r, _ := ctx.Value(key{}).(*Recorder)
	return r
}

// Fresh returns the channel of the Waiter that the error wraps. It returns false if
// there is none, if the error is terminal, or if it wraps other errors, too.
func Fresh(err error) (<-chan struct{}, bool) {
	if err == nil || errors.Is(err, reconcile.TerminalError(nil)) {
		return nil, false
	}
	return fresh(err)
}

func fresh(err error) (<-chan struct{}, bool) {
	switch e := err.(type) { //nolint:errorlint // it walks the tree
	case Waiter:
		return e.Fresh(), true
	case interface{ Unwrap() error }:
		if next := e.Unwrap(); next != nil {
			return fresh(next)
		}
	case interface{ Unwrap() []error }:
		return freshOfAll(e.Unwrap())
	case interface{ Errors() []error }: // an aggregate of Kubernetes
		return freshOfAll(e.Errors())
	}
	return nil, false
}

// freshOfAll is the channel of the first error, if all have one.
func freshOfAll(errs []error) (first <-chan struct{}, ok bool) {
	for i, err := range errs {
		next, waits := fresh(err)
		if !waits {
			return nil, false
		}
		if i == 0 {
			first = next
		}
	}
	return first, len(errs) > 0
}
