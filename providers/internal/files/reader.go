// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Package files follows files that other programs write: in place, by renaming, or
// behind a symbolic link.
//
// A [Reader] believes a content when two reads have returned it. A [Notifier] says when
// to read again.
package files

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"time"
)

const (
	// SettleTime is how long a content must stay the same. The first half of a YAML file
	// is often valid.
	SettleTime = 300 * time.Millisecond

	// maxSize is how large a file may be.
	maxSize = 8 << 20
)

// Reader holds the content of files. It is used from one goroutine at a time.
type Reader struct {
	files map[string]*state
}

// state is what is known of a file.
type state struct {
	accepted *reading // nil before the first
	unproven *reading // another content, that has not stayed the same yet, or nil
}

// reading is the result of a read.
type reading struct {
	content        []byte
	err            error
	modified       time.Time
	started, ended time.Time
}

// NewReader returns a Reader without files.
func NewReader() *Reader { return &Reader{files: map[string]*state{}} }

// Scan reads the files at these paths and forgets all others. It returns whether it must
// be called again after SettleTime, since a file has changed.
func (r *Reader) Scan(paths []string) (again bool) {
	files := make(map[string]*state, len(paths))
	for _, path := range paths {
		if files[path] != nil {
			continue
		}
		s := r.files[path]
		if s == nil {
			s = &state{}
		}
		files[path] = s
		s.take(read(path))
		again = again || s.unproven != nil
	}
	r.files = files
	return again
}

// Read returns the content of a file. The error is fs.ErrNotExist for a file that does
// not exist, also if Scan has not read it.
func (r *Reader) Read(path string) ([]byte, error) {
	s := r.files[path]
	switch {
	case s == nil:
		return nil, &fs.PathError{Op: "read", Path: path, Err: fs.ErrNotExist}
	case s.accepted == nil:
		return nil, fmt.Errorf("%s is being written", path)
	}
	return s.accepted.content, s.accepted.err
}

// Pending reports whether one of the files has changed, but may not be complete yet.
func (r *Reader) Pending(paths ...string) bool {
	return slices.ContainsFunc(paths, func(path string) bool {
		s := r.files[path]
		return s != nil && s.unproven != nil
	})
}

// take takes the result of a read.
func (s *state) take(now *reading) {
	first := s.accepted == nil
	atRest := now.err != nil || now.started.Sub(now.modified) >= SettleTime
	switch {
	case !first && s.accepted.sameContent(now):
		s.unproven = nil
	case first && s.unproven == nil && atRest,
		s.unproven != nil && s.unproven.equals(now) && now.started.Sub(s.unproven.ended) >= SettleTime:
		s.accepted, s.unproven = now, nil
	case s.unproven == nil || !s.unproven.equals(now):
		s.unproven = now
	}
}

func read(path string) *reading {
	r := &reading{started: time.Now()}
	r.content, r.modified, r.err = readFile(path)
	r.ended = time.Now()
	return r
}

// readFile reads a regular file. Others, such as pipes, could block.
func readFile(path string) ([]byte, time.Time, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, time.Time{}, err
	case !info.Mode().IsRegular():
		return nil, time.Time{}, fmt.Errorf("%s is not a file", path)
	case info.Size() > maxSize:
		return nil, time.Time{}, fmt.Errorf("%s is larger than %d bytes", path, maxSize)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, time.Time{}, err
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, maxSize))
	if err == nil {
		info, err = f.Stat() // after the read, to notice a write during it
	}
	if err != nil {
		return nil, time.Time{}, err
	}
	return content, info.ModTime(), nil
}

func (r *reading) sameContent(other *reading) bool {
	if r.err != nil || other.err != nil {
		return r.err != nil && other.err != nil && r.err.Error() == other.err.Error()
	}
	return bytes.Equal(r.content, other.content)
}

func (r *reading) equals(other *reading) bool {
	return r.sameContent(other) && r.modified.Equal(other.modified)
}

// IsMissing reports whether the error is that a file or a folder does not exist.
func IsMissing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, errNotDir)
}
