// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package inventory

import "context"

// Source says which clusters there are.
type Source interface {
	// Run tells the sink of all profiles, of their changes, and of those that
	// go, until the context ends; then it returns nil. It may repeat what it
	// told before.
	//
	// Run returns an error when it cannot go on. What it told until then stays
	// true: a source that fails takes no cluster away. It may be run again,
	// and then tells everything anew; see Restart.
	Run(ctx context.Context, sink Sink) error
}

// Sink is told of profiles by a Source, from one goroutine at a time. Its
// methods return at once: what takes time is done elsewhere.
type Sink interface {
	// Put says that a profile is there, with this content. The sink may keep
	// the profile; nobody changes it any more.
	Put(profile *Profile)

	// Remove says that a profile is gone. Keys never put are ignored.
	Remove(key Key)

	// Synced says that every profile there was at the start of this run has
	// been put. It is called once in a run.
	Synced()
}

// SourceFunc makes a function a Source.
type SourceFunc func(ctx context.Context, sink Sink) error

// Run calls the function.
func (f SourceFunc) Run(ctx context.Context, sink Sink) error {
	return f(ctx, sink)
}
