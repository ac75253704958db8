// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"context"
	"fmt"
)

// Source lists profiles and watches them.
type Source interface {
	// Run sends the sink all profiles, their changes and their removal, until the
	// context ends; then it returns nil. It may send a profile again unchanged.
	//
	// Run returns an error if it cannot continue. The profiles that it has sent
	// remain valid: a source that fails removes no cluster. It may be run again,
	// and then sends all profiles again; see Restart.
	Run(ctx context.Context, sink Sink) error
}

// Sink receives profiles from a Source. It is called from one goroutine at a time
// and must return at once.
type Sink interface {
	// Put adds or replaces a profile. The sink may keep it, and must not change it.
	Put(profile *Profile)

	// Remove removes a profile. Unknown keys are ignored.
	Remove(key Key)

	// Synced is called once in a run, when every profile that existed at its
	// start has been put.
	Synced()
}

// SourceFunc is a function that implements Source.
type SourceFunc func(ctx context.Context, sink Sink) error

// Run calls the function.
func (f SourceFunc) Run(ctx context.Context, sink Sink) error {
	return f(ctx, sink)
}

// decorated is a source over a source, with a name for logs.
type decorated struct {
	SourceFunc
	name string
	src  Source
}

func (d *decorated) String() string {
	return d.name + " " + nameOf(d.src)
}

// nameOf returns the source's name for logs.
func nameOf(src Source) string {
	if s, ok := src.(fmt.Stringer); ok {
		return s.String()
	}
	return fmt.Sprintf("%T", src)
}
