// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"bytes"
	"fmt"
	"os"
	"reflect"
	"sync"
	"sync/atomic"

	"github.com/go-logr/logr"
)

// providerFile follows a provider file: each use reads it, and parses it where
// its content is another than before. Whether it was replaced, written in place
// or mounted anew behind a symbolic link does not matter.
type providerFile struct {
	path  string
	check func(place string, providers []Provider) error
	log   logr.Logger

	// inForce is told of each version in turn, and must return at once.
	inForce func(providers []Provider)

	// warn is told of each content that was put into force, and may do I/O.
	warn func(providers []Provider)

	reads atomic.Uint64 // numbers the reads

	mu      sync.Mutex // guards what follows; not held while the file is read
	read    uint64     // the number of the read that is in force
	content []byte     // what that read gave, nil where it failed
	fault   string     // why the content is not in force, "" where it is
	current []Provider // of the last good content

	version    uint64        // counts how often current has become another
	superseded chan struct{} // closed by the next version
}

// load reads the file for the first time.
func (f *providerFile) load() error {
	content, err := os.ReadFile(f.path)
	if err != nil {
		return fmt.Errorf("provider file: %w", err)
	}
	providers, err := f.parse(content)
	if err != nil {
		return err
	}
	f.content, f.current, f.superseded = content, providers, make(chan struct{})
	f.inForce(providers)
	f.warn(providers)
	return nil
}

// providers returns the file's providers: those of the last content that could
// be used. The slice is shared and must not be changed.
func (f *providerFile) providers() []Provider {
	number := f.reads.Add(1)
	content, err := os.ReadFile(f.path)
	current, changed, fault := f.update(number, content, err)
	if fault != nil {
		f.log.Error(fault, "Provider file cannot be used, its last good content stays in force", "file", f.path)
	} else if changed {
		f.log.Info("Provider file has changed and is in force", "file", f.path, "providers", len(current))
		f.warn(current)
	}
	return current
}

// update takes in what a read gave. It returns the providers in force, whether
// their file is a new one, and a fault where that has not been returned before.
func (f *providerFile) update(number uint64, content []byte, err error) (current []Provider, changed bool, fault error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if number < f.read {
		return f.current, false, nil // a later read has overtaken this one
	}
	f.read = number
	if err == nil && f.content != nil && bytes.Equal(content, f.content) {
		return f.current, false, nil
	}
	var providers []Provider
	if f.content = content; err == nil {
		providers, err = f.parse(content)
	} else {
		f.content = nil
	}
	if err != nil {
		if f.fault == err.Error() {
			return f.current, false, nil
		}
		f.fault = err.Error()
		return f.current, false, err
	}
	f.fault = ""
	if !reflect.DeepEqual(providers, f.current) {
		f.current = providers
		f.inForce(providers)
		f.version++
		close(f.superseded)
		f.superseded = make(chan struct{})
	}
	return f.current, true, nil
}

func (f *providerFile) parse(content []byte) ([]Provider, error) {
	file, err := ParseFile(f.path, content)
	if err != nil {
		return nil, err
	}
	return file.Providers, f.check("provider file "+f.path, file.Providers)
}
