// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Package monitor observes the requests to one cluster.
package monitor

import (
	"errors"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"
)

// ErrDisengaged is the error of requests after Close.
var ErrDisengaged = errors.New("the cluster has been disengaged")

// Transport notes when a cluster last sent data, whether a connection was dropped or
// the credentials were refused, and how many watches are open.
type Transport struct {
	// OnData is called when the cluster has sent data, from many goroutines. It is set
	// before the first request. Optional.
	OnData func()

	next  atomic.Pointer[http.RoundTripper]
	clock clock.PassiveClock
	// start is what lastData counts from, by the monotonic clock.
	start    time.Time
	lastData atomic.Int64 // nanoseconds since start
	// suspect is set when a request failed, since the next response may come from
	// another cluster, and when the credentials were refused: a watch goes on
	// without them.
	suspect atomic.Bool
	watches atomic.Int64
	closed  atomic.Bool
}

// New returns a Transport that sends requests with the next one.
func New(next http.RoundTripper, c clock.PassiveClock) *Transport {
	t := &Transport{clock: c, start: c.Now()}
	t.SetNext(next)
	return t
}

// Next returns the next transport.
func (t *Transport) Next() http.RoundTripper { return *t.next.Load() }

// SetNext replaces the next transport. Requests under way use the one before.
func (t *Transport) SetNext(next http.RoundTripper) { t.next.Store(&next) }

// Close makes all later requests fail.
func (t *Transport) Close() { t.closed.Store(true) }

// AliveSince reports whether the cluster has sent data since that time.
func (t *Transport) AliveSince(since time.Time) bool {
	return t.start.Add(time.Duration(t.lastData.Load())).After(since)
}

// Suspect reports whether, since the last call, a connection was dropped or
// credentials were refused (401).
func (t *Transport) Suspect() bool { return t.suspect.Swap(false) }

// OpenWatches returns the number of open watches.
func (t *Transport) OpenWatches() int { return int(t.watches.Load()) }

// RoundTrip implements http.RoundTripper.
func (t *Transport) RoundTrip(request *http.Request) (*http.Response, error) {
	if t.closed.Load() {
		if request.Body != nil {
			request.Body.Close()
		}
		return nil, ErrDisengaged
	}
	response, err := t.Next().RoundTrip(request)
	if err != nil {
		t.suspect.Store(true)
		return nil, err
	}
	switch {
	case response.StatusCode == http.StatusUnauthorized:
		t.suspect.Store(true)
	case response.StatusCode < http.StatusMultipleChoices: // others may come from a proxy
		t.noteData()
	}
	if response.StatusCode != http.StatusSwitchingProtocols { // its body is written to as well
		body := &observedBody{ReadCloser: response.Body, transport: t}
		if isWatch(request) {
			t.watches.Add(1)
			body.closeWatch = sync.OnceFunc(func() { t.watches.Add(-1) })
		}
		response.Body = body
	}
	return response, nil
}

func (t *Transport) noteData() {
	t.lastData.Store(int64(t.clock.Since(t.start)))
	if t.OnData != nil {
		t.OnData()
	}
}

func isWatch(request *http.Request) bool {
	watch := request.URL.Query().Get("watch")
	return watch == "true" || watch == "1"
}

// observedBody notes the data of a response, such as the events of a watch.
type observedBody struct {
	io.ReadCloser
	transport  *Transport
	closeWatch func() // nil unless the response is a watch
}

// Read implements io.Reader.
func (b *observedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if n > 0 {
		b.transport.noteData()
	}
	if err != nil && b.closeWatch != nil {
		b.transport.suspect.Store(true)
	}
	return n, err
}

// Close implements io.Closer.
func (b *observedBody) Close() error {
	if b.closeWatch != nil {
		b.closeWatch()
	}
	return b.ReadCloser.Close()
}
