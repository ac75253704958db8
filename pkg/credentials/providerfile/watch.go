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

// pollInterval is how often Run reads the file. That costs less than being
// notified of changes on every kind of volume, and through every chain of
// symbolic links.
const pollInterval = 2 * time.Second

// Watcher holds the current version of a provider file. Each use reads the file,
// and parses it if its content has changed: it does not matter whether it was
// replaced, written in place or mounted again behind a symbolic link. A version
// that is invalid is logged once, and the previous one is kept.
//
// A Watcher is safe for concurrent use. It has no goroutine of its own.
type Watcher struct {
	path    string
	options WatcherOptions

	reads atomic.Uint64 // numbers the reads

	mu       sync.Mutex // guards what follows; not held while the file is read
	read     uint64     // the number of the read that current is from
	content  []byte     // of that read, nil if it failed
	fault    string     // why the content is invalid, or ""
	accepted uint64     // counts the contents that were valid
	current  *File
	replaced chan struct{} // closed when current is replaced

	notifying sync.Mutex // held while Accepted is called; guards what follows
	notified  uint64     // the value of accepted for which it was called
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

// NewWatcher reads the file. Its errors are those of Load.
func NewWatcher(path string, options WatcherOptions) (*Watcher, error) {
	if options.Logger.IsZero() {
		options.Logger = logr.Discard()
	}
	content, err := os.ReadFile(path)
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
	content, err := os.ReadFile(w.path)
	current, accepted, err := w.update(number, content, err)
	if err != nil {
		w.options.Logger.Error(err, "Invalid provider file, keeping the previous version", "file", w.path)
	} else if accepted {
		w.options.Logger.Info("Provider file changed", "file", w.path, "providers", len(current.Providers))
		w.notify()
	}
	return current
}

// Run reads the file every two seconds until the context ends, and calls the
// function when the current version is no longer the one since, and after each
// change. Several changes may be one call.
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

// update takes the result of a read. It returns the current version, whether its
// content is new, and an error that it has not returned before.
func (w *Watcher) update(number uint64, content []byte, err error) (current *File, accepted bool, fault error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if number < w.read {
		return w.current, false, nil // a later read was faster
	}
	w.read = number
	if err == nil && w.content != nil && bytes.Equal(content, w.content) {
		return w.current, false, nil
	}
	var file *File
	if w.content = content; err == nil {
		file, err = parse(w.path, content, w.options.Check)
	} else {
		w.content = nil
	}
	if err != nil {
		if w.fault == err.Error() {
			return w.current, false, nil
		}
		w.fault = err.Error()
		return w.current, false, err
	}
	w.fault = ""
	w.accepted++
	if !reflect.DeepEqual(file, w.current) {
		w.current = file
		close(w.replaced)
		w.replaced = make(chan struct{})
	}
	return w.current, true, nil
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
