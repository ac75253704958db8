// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"slices"
	"strings"
	"sync"
)

// record stores the output of a program, by line. It is an io.Writer.
type record struct {
	mu      sync.Mutex // guards the fields below
	lines   []string
	rest    []byte        // the incomplete last line
	changed chan struct{} // closed when there are more lines
}

func newRecord() *record {
	return &record{changed: make(chan struct{})}
}

// Write implements io.Writer.
func (r *record) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.rest = append(r.rest, p...)
	for {
		line, rest, ended := bytes.Cut(r.rest, []byte("\n"))
		if !ended {
			break
		}
		r.lines = append(r.lines, string(line))
		r.rest = rest
	}
	close(r.changed)
	r.changed = make(chan struct{})
	return len(p), nil
}

// From returns the lines from the given index on, and a channel that is closed
// when there may be more.
func (r *record) From(line int) ([]string, <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.lines[line:]), r.changed
}

// Matching returns the lines that match.
func (r *record) Matching(match func(line string) bool) []string {
	lines, _ := r.From(0)
	return slices.DeleteFunc(lines, func(line string) bool { return !match(line) })
}

// Contains reports whether the text was written.
func (r *record) Contains(text string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	contains := func(line string) bool { return strings.Contains(line, text) }
	return slices.ContainsFunc(r.lines, contains) || contains(string(r.rest))
}

// Len returns the number of lines.
func (r *record) Len() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.lines)
}
