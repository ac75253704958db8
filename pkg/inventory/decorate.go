// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"context"
	"fmt"
)

// decorated is a source over a source, with a name for logs.
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
