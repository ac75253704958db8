// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"context"
	"time"
)

// ChangeNotifier is implemented by Methods that know when their answers may
// have become others, though no profile has changed.
type ChangeNotifier interface {
	// NotifyChange lets the function be called after each change, until the
	// context ends. It returns at once, and so must the function. Several
	// changes may come as one.
	NotifyChange(ctx context.Context, changed func())
}

var _ ChangeNotifier = &Resolver{}

// pollInterval is how often the provider file is looked at while somebody wants
// to know of changes. Reading it is cheaper than it is to be told of changes on
// every kind of volume, and through every chain of symbolic links.
const pollInterval = 2 * time.Second

// NotifyChange implements ChangeNotifier: the function is called when the
// providers of the file have become others, two seconds later at most, from a
// goroutine that ends with the context or the Resolver. A version of the file
// that cannot be used is logged and is no change, nor is one that says the same
// in other words.
func (r *Resolver) NotifyChange(ctx context.Context, changed func()) {
	if r.file == nil {
		return
	}
	_, seen := r.file.next()
	r.pool.Go(func() { r.file.follow(ctx, r.pool.Closing(), seen, changed) })
}

// follow calls the function for each version after the one seen.
func (f *providerFile) follow(ctx context.Context, closing <-chan struct{}, seen uint64, changed func()) {
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for {
		next, version := f.next()
		if version != seen && ctx.Err() == nil {
			seen = version
			changed()
		}
		select {
		case <-ctx.Done():
			return
		case <-closing:
			return
		case <-next:
		case <-ticker.C:
			f.providers()
		}
	}
}

// next returns the version in force, and what is closed by the next one.
func (f *providerFile) next() (superseded <-chan struct{}, version uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.superseded, f.version
}
