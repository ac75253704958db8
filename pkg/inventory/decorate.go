// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"context"
	"fmt"
	"maps"
)

// decorated is a source over a source. Its name is for logs.
type decorated struct {
	name string
	src  Source
	run  func(ctx context.Context, sink Sink) error
}

func (d *decorated) Run(ctx context.Context, sink Sink) error {
	return d.run(ctx, sink)
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

// WithAnnotation returns a profile with the annotation set, or without it where
// the value is empty. The one that was given is left as it is, and shares all
// else with what is returned; it is itself returned where nothing is to change.
func WithAnnotation(profile *Profile, key, value string) *Profile {
	if present, ok := profile.Annotations[key]; present == value && ok == (value != "") {
		return profile
	}
	changed := *profile
	changed.Annotations = make(map[string]string, len(profile.Annotations)+1)
	maps.Copy(changed.Annotations, profile.Annotations)
	delete(changed.Annotations, key)
	if value != "" {
		changed.Annotations[key] = value
	}
	return &changed
}
