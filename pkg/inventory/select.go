// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package inventory

import "context"

// Predicate reports whether a profile matches. It is called once for each version
// of a profile, so it must depend on nothing else. It must return at once.
type Predicate func(profile *Profile) bool

// Select returns a source of src's profiles that match all predicates. A profile
// that no longer matches is removed. Selection.Predicate returns a predicate for
// common conditions.
func Select(src Source, predicates ...Predicate) Source {
	return &decorated{
		name: "selection of", src: src,
		run: func(ctx context.Context, sink Sink) error {
			return src.Run(ctx, &selectSink{Sink: sink, predicates: predicates})
		},
	}
}

// selectSink keeps no state: it removes every profile that does not match.
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
