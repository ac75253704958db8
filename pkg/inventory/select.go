// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package inventory

import "context"

// Predicate says whether a profile matches. It returns at once, changes
// nothing, and depends on nothing but the profile: it is asked again with each
// version of a profile, and never between.
type Predicate func(profile *Profile) bool

// Select returns a source of those of src's profiles that match all
// predicates. A profile that stops matching leaves, one that starts to match
// joins. A Selection gives a predicate for what is asked for most.
func Select(src Source, predicates ...Predicate) Source {
	return &decorated{
		name: "selection of", src: src,
		run: func(ctx context.Context, sink Sink) error {
			return src.Run(ctx, &selectSink{Sink: sink, predicates: predicates})
		},
	}
}

// selectSink keeps no state: a profile that does not match is always removed,
// whatever an earlier run of the source has told.
type selectSink struct {
	Sink
	predicates []Predicate
}

func (s *selectSink) Put(profile *Profile) {
	for _, matches := range s.predicates {
		if !matches(profile) {
			s.Remove(KeyOf(profile))
			return
		}
	}
	s.Sink.Put(profile)
}
