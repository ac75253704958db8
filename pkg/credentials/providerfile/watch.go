// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package providerfile

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
)

const (
	// pollInterval is how often Run reads the file. That costs less than being
	// notified of changes on every kind of volume, and through every chain of
	// symbolic links.
	pollInterval = 500 * time.Millisecond

	// settleTime is how long a content must stay the same. The first half of a
	// YAML file is often valid, and lacks the restrictions of its second half.
	settleTime = 400 * time.Millisecond

	// settleReads limits how often NewWatcher reads a file that keeps changing.
	settleReads = 20
)

// Watcher holds the current version of a provider file. Each use reads the file.
// A content counts once two reads, at least 0.4 s apart, have returned it and the
// same time of modification: it does not matter whether the file was replaced,
// written in place or mounted again behind a symbolic link. A version that is invalid is logged once, and the
// previous one is kept. A version that loosens the restrictions of a provider is
// logged with the names of the provider and of its fields.
//
// A Watcher is safe for concurrent use. It has no goroutine of its own.
type Watcher struct {
	path    string
	options WatcherOptions

	reads atomic.Uint64 // numbers the reads

	mu       sync.Mutex // guards what follows; not held while the file is read
	read     uint64     // the number of the read that current is from
	content  []byte     // that was last judged, nil if it could not be read
	fault    string     // why the content is invalid, or ""
	unproven *reading   // a content that has not stayed the same yet, or nil
	accepted uint64     // counts the contents that were valid
	current  *File
	replaced chan struct{} // closed when current is replaced

	notifying sync.Mutex // held while Accepted is called; guards what follows
	notified  uint64     // the value of accepted for which it was called
}

// reading is the result of a read.
type reading struct {
	content  []byte
	err      error
	modified time.Time
	started  time.Time
	ended    time.Time
}

func readFile(path string) *reading {
	r := &reading{started: time.Now()}
	if r.content, r.err = os.ReadFile(path); r.err == nil {
		var info os.FileInfo
		if info, r.err = os.Stat(path); r.err == nil { // after the read, to notice a write during it
			r.modified = info.ModTime()
		}
	}
	r.ended = time.Now()
	return r
}

func (r *reading) equals(other *reading) bool {
	if r.err != nil || other.err != nil {
		return r.err != nil && other.err != nil && r.err.Error() == other.err.Error()
	}
	return bytes.Equal(r.content, other.content) && r.modified.Equal(other.modified)
}

// WatcherOptions configure a Watcher.
type WatcherOptions struct {
	// Check refuses an entry, or completes it. Errors get the names of the file
	// and of the entry as a prefix. Optional.
	Check func(*Provider) error

	// Accepted is called with each new content of the file, the first one
	// included, one after the other. Optional.
	Accepted func(*File)

	// Logger gets new versions of the file, valid or not. Default: none.
	Logger logr.Logger
}

// NewWatcher reads the file. If it was modified less than 0.4 s ago, NewWatcher
// waits until its content stays the same for that long, at most 10 s. Its errors
// are those of Load.
func NewWatcher(path string, options WatcherOptions) (*Watcher, error) {
	if options.Logger.IsZero() {
		options.Logger = logr.Discard()
	}
	content, err := readSettled(path)
	if err != nil {
		return nil, fmt.Errorf("provider file: %w", err)
	}
	file, err := parse(path, content, options.Check)
	if err != nil {
		return nil, err
	}
	w := &Watcher{
		path: path, options: options,
		content: content, accepted: 1, current: file, replaced: make(chan struct{}),
	}
	w.notify()
	return w, nil
}

// readSettled reads a file that may be being written. A program that starts with
// the first half of the file would use credentials without their restrictions.
func readSettled(path string) ([]byte, error) {
	var previous *reading
	for range settleReads {
		current := readFile(path)
		if current.err != nil {
			return nil, current.err
		}
		atRest := current.started.Sub(current.modified) >= settleTime
		if atRest || previous != nil && current.equals(previous) {
			return current.content, nil
		}
		previous = current
		time.Sleep(settleTime)
	}
	return nil, fmt.Errorf("%s keeps changing", path)
}

// Current returns the last valid version, without reading the file. It must not
// be changed.
func (w *Watcher) Current() *File {
	file, _ := w.next()
	return file
}

// File reads the file and returns its last valid version. That must not be
// changed, and is the same one for as long as its entries are equal.
func (w *Watcher) File() *File {
	number := w.reads.Add(1)
	r := readFile(w.path)
	previous, current, accepted, err := w.update(number, r)
	if err != nil {
		w.options.Logger.Error(err, "Invalid provider file, keeping the previous version", "file", w.path)
	} else if accepted {
		w.options.Logger.Info("Provider file changed", "file", w.path, "providers", len(current.Providers))
		for _, l := range loosened(previous, current) {
			w.options.Logger.Info("Provider file loosens restrictions", "file", w.path, "provider", l.provider, "fields", l.fields)
		}
		w.notify()
	}
	return current
}

// Run reads the file every half second until the context ends, and calls the
// function when the current version is no longer the one since, and after each
// change, about one second after it at the latest. Several changes may be one call.
func (w *Watcher) Run(ctx context.Context, since *File, changed func()) {
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for {
		file, replaced := w.next()
		if file != since && ctx.Err() == nil {
			since = file
			changed()
		}
		select {
		case <-ctx.Done():
			return
		case <-replaced:
		case <-ticker.C:
			w.File()
		}
	}
}

// next returns the current version, and what is closed when it is replaced.
func (w *Watcher) next() (file *File, replaced <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.current, w.replaced
}

// update takes the result of a read. It returns the version until now and the
// current one, whether that has a new content, and an error that it has not
// returned before.
func (w *Watcher) update(number uint64, r *reading) (previous, current *File, accepted bool, fault error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	previous = w.current
	if number < w.read {
		return previous, w.current, false, nil // a later read was faster
	}
	w.read = number
	if r.err == nil && w.content != nil && bytes.Equal(r.content, w.content) {
		w.unproven = nil
		return previous, w.current, false, nil
	}
	if w.unproven == nil || !w.unproven.equals(r) {
		w.unproven = r
		return previous, w.current, false, nil
	}
	if r.started.Sub(w.unproven.ended) < settleTime {
		return previous, w.current, false, nil
	}
	var file *File
	err := r.err
	if w.content = r.content; err == nil {
		file, err = parse(w.path, r.content, w.options.Check)
	} else {
		w.content = nil
	}
	if err != nil {
		if w.fault == err.Error() {
			return previous, w.current, false, nil
		}
		w.fault = err.Error()
		return previous, w.current, false, err
	}
	w.unproven = nil
	w.fault = ""
	w.accepted++
	if !reflect.DeepEqual(file, w.current) {
		w.current = file
		close(w.replaced)
		w.replaced = make(chan struct{})
	}
	return previous, w.current, true, nil
}

// notify calls Accepted with the current version, unless that was done.
func (w *Watcher) notify() {
	if w.options.Accepted == nil {
		return
	}
	w.notifying.Lock()
	defer w.notifying.Unlock()
	w.mu.Lock()
	current, accepted := w.current, w.accepted
	w.mu.Unlock()
	if accepted != w.notified {
		w.notified = accepted
		w.options.Accepted(current)
	}
}
