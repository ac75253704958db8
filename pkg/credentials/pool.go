// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"context"
	"sync"
)

// pool holds one authenticator for all links whose plugin run would be the
// same, for as long as there are such links.
type pool struct {
	options *Options
	runner  *runner

	// goroutines are those that run plugins and follow the provider file.
	goroutines sync.WaitGroup

	// closing is closed when the pool is.
	closing chan struct{}

	mu      sync.Mutex // guards what follows
	entries map[string]*poolEntry
	closed  bool
}

// poolEntry is an authenticator and its users.
type poolEntry struct {
	auth    *authenticator
	links   map[*managed]struct{}
	metrics *providerMetrics
}

func newPool(options *Options) *pool {
	return &pool{
		options: options,
		runner:  newRunner(options),
		entries: map[string]*poolEntry{},
		closing: make(chan struct{}),
	}
}

// acquire returns the authenticator for the link, or ErrClosed.
func (p *pool) acquire(m *managed) (*authenticator, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, ErrClosed
	}
	entry := p.entries[m.runKey]
	if entry == nil {
		// The link itself is not held: it may be released before the entry is.
		key, invocation, held := m.runKey, m.invocation, metrics.hold(m.provider)
		entry = &poolEntry{links: map[*managed]struct{}{}, metrics: held, auth: &authenticator{
			obtain: func(ctx context.Context) (*credential, error) {
				return p.runner.run(ctx, held, invocation)
			},
			spawn:          p.spawn,
			newCertificate: func() { p.rewire(key) },
			log:            p.options.Logger.WithValues("provider", m.provider, "plugin", m.invocation.name()),
		}}
		held.add(entry.auth)
		p.entries[m.runKey] = entry
	}
	entry.links[m] = struct{}{}
	return entry.auth, nil
}

// stop lets requests fail with the error, and takes the metrics away.
func (e *poolEntry) stop(err error) {
	e.auth.stop(err)
	e.metrics.remove(e.auth)
}

// release takes the link out, and its authenticator where it was the last.
func (p *pool) release(m *managed) {
	p.mu.Lock()
	entry := p.entries[m.runKey]
	last := false
	if entry != nil {
		if _, user := entry.links[m]; user {
			delete(entry.links, m)
			last = len(entry.links) == 0
		}
	}
	if last {
		delete(p.entries, m.runKey)
	}
	p.mu.Unlock()
	if last {
		entry.stop(ErrReleased)
	}
}

// rewire closes the connections of all links that use the authenticator.
func (p *pool) rewire(key string) {
	p.mu.Lock()
	var links []*managed
	if entry := p.entries[key]; entry != nil {
		for m := range entry.links {
			links = append(links, m)
		}
	}
	p.mu.Unlock()
	for _, m := range links {
		m.rewire()
	}
}

// spawn runs f in a goroutine that close waits for. It returns false, and runs
// nothing, once the pool is closed.
func (p *pool) spawn(f func()) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	p.goroutines.Go(f)
	return true
}

func (p *pool) isClosed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.closed
}

// close ends all links and waits for all goroutines.
func (p *pool) close() {
	p.mu.Lock()
	if !p.closed {
		p.closed = true
		close(p.closing)
	}
	entries := p.entries
	p.entries = nil
	p.mu.Unlock()

	for _, entry := range entries {
		entry.stop(ErrClosed)
		for m := range entry.links {
			m.end(ErrClosed)
		}
	}
	p.goroutines.Wait()
}
