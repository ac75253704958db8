// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// A reflector lists all objects after a watch that ended within one second and
	// without an event. Watches without data are restarted within restartTime.
	restartTime = 2 * time.Second

	// Watches that end within shortWatch are delayed from the second one in a row on,
	// by restartDelay, which doubles up to maxRestartDelay.
	shortWatch      = time.Second
	restartDelay    = 10 * time.Millisecond
	maxRestartDelay = 30 * time.Second

	// lingerTime is how long after an initial list, whose end the reflector does not
	// count as an event, the watch lasts for the reflector.
	lingerTime = 1500 * time.Millisecond

	// timeoutTolerance is how long before its timeout a watch may end without
	// counting as lost.
	timeoutTolerance = 5 * time.Second
)

// watchBody is the body of a watch.
type watchBody struct {
	stream *stream
	query  *query
	next   http.RoundTripper
	began  time.Time

	bookmarks atomic.Bool // the API server sends bookmarks

	// The set's lock guards these three. Read uses data without it, and replaces it.
	opened  time.Time
	listing bool      // the initial list is not complete
	data    *activity // since that was complete or, before, since the watch was opened

	// Read uses these.
	initial  bool   // as listing
	tail     []byte // the last data of the initial list
	received bool   // there was data

	done chan struct{} // closed when the reflector gets no more data

	mu     sync.Mutex // guards what follows
	inner  io.ReadCloser
	ending bool               // done is closed
	cancel context.CancelFunc // of the request of a restart; nil if there was none
}

// Read implements io.Reader. It is called by one goroutine. The only error is
// io.EOF: a reflector lists all objects after most others.
func (b *watchBody) Read(p []byte) (int, error) {
	for {
		inner := b.current()
		n, err := inner.Read(p)
		if n > 0 {
			b.received = true
			b.data.note()
			b.observe(p[:n])
			return n, nil
		}
		if err == nil {
			return 0, nil
		}
		inner.Close()
		b.ended()
		if b.received || time.Since(b.began) > restartTime || !b.reopen() {
			b.linger()
			return 0, io.EOF
		}
	}
}

// observe looks for the end of the initial list.
func (b *watchBody) observe(data []byte) {
	if !b.initial {
		b.findBookmark(data)
		return
	}
	end := []byte(metav1.InitialEventsAnnotationKey)
	b.tail = append(b.tail, data...)
	if !bytes.Contains(b.tail, end) {
		b.tail = append(b.tail[:0], b.tail[max(0, len(b.tail)-len(end)):]...)
		return
	}
	b.initial, b.tail = false, nil
	s := b.stream.set
	s.mu.Lock()
	defer s.mu.Unlock()
	b.listing = false
	b.stream.completeLocked(b)
	s.changedLocked()
}

// ended notes that the cluster has ended the watch, or the connection was lost: then
// it ends before its timeout.
func (b *watchBody) ended() {
	inTime := b.query.timeout > 0 && time.Since(b.began) > b.query.timeout-timeoutTolerance
	b.stream.closed(b, !b.canceled() && !inTime)
}

// canceled reports whether the watch is not wanted any more.
func (b *watchBody) canceled() bool {
	select {
	case <-b.done:
		return true
	default:
		return b.query.request.Context().Err() != nil
	}
}

// reopen starts the watch again, and reports whether that was possible.
func (b *watchBody) reopen() bool {
	if !b.cancelable() {
		return false
	}
	b.stream.begin(b.query)
	defer b.stream.end()
	b.stream.pace(b.query.request.Context())
	response, err := b.stream.send(b.query, b.next)
	if err != nil {
		return false
	}
	if response.StatusCode != http.StatusOK || !b.replace(response.Body) {
		response.Body.Close()
		return false
	}
	b.stream.opened(b)
	return true
}

// cancelable makes finish end the request, which runs without the reflector, and
// reports whether the body is in use. Only here, since the context of an informer
// needs a goroutine for each that is derived from it.
func (b *watchBody) cancelable() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ending || b.cancel != nil {
		return !b.ending
	}
	var ctx context.Context
	ctx, b.cancel = context.WithCancel(b.query.request.Context())
	b.query.request = b.query.request.WithContext(ctx)
	return true
}

// linger waits until the reflector will continue at its resource version.
func (b *watchBody) linger() {
	if !b.query.initial || b.initial {
		return // the list is not complete, or there was none
	}
	timer := time.NewTimer(lingerTime - time.Since(b.data.at()))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-b.done:
	case <-b.query.request.Context().Done():
	}
}

func (b *watchBody) current() io.ReadCloser {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.inner
}

// replace reports whether the body is in use and has the other inner one.
func (b *watchBody) replace(inner io.ReadCloser) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.ending {
		b.inner = inner
	}
	return !b.ending
}

// finish ends what waits, but for a read of the inner body, which it returns.
func (b *watchBody) finish() io.ReadCloser {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.ending {
		b.ending = true
		close(b.done)
	}
	return b.inner
}

// cancelRestart ends the request of a restart.
func (b *watchBody) cancelRestart() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.cancel != nil {
		b.cancel()
	}
}

// interrupt makes the watch end for the reflector. It does not block.
func (b *watchBody) interrupt() {
	inner := b.finish()
	b.cancelRestart()
	go inner.Close() // may wait for the connection
}

// Close implements io.Closer.
func (b *watchBody) Close() error {
	err := b.finish().Close() // first: it returns when the connection is free
	b.cancelRestart()
	b.stream.closed(b, false)
	return err
}
