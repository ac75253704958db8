// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternal "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	internalvalidation "k8s.io/apimachinery/pkg/apis/meta/internalversion/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/rollcall-dev/rollcall/pkg/mc/mctest/internal/store"
)

// minWatchTimeout is the shortest duration of a watch for which the client sets
// no timeout. The longest is twice that.
const minWatchTimeout = 30 * time.Minute

// watcher is one open watch. Only its own goroutine uses it.
type watcher struct {
	server    *Server
	target    Target
	request   *request
	selection *selection
	encoder   *encoder
	bookmarks bool

	w       http.ResponseWriter
	control *http.ResponseController
	buffer  bytes.Buffer
	// cursor is the revision up to which events have been sent.
	cursor uint64
	// survived is a fault that ends other watches, but not those that begin
	// with a list while it is in force.
	survived *activeFault
}

var errWatchEnds = errors.New("watch ends")

// serveWatch serves a watch until either side ends it.
func (s *Server) serveWatch(w http.ResponseWriter, r *http.Request, req *request, t Target, enc *encoder) error {
	var options metainternal.ListOptions
	if err := parameters(r, &options); err != nil {
		return err
	}
	options.Watch = true
	if err := invalidOptions("ListOptions", internalvalidation.ValidateListOptions(&options, true)); err != nil {
		return err
	}
	sel, err := newSelection(t, &options)
	if err != nil {
		return err
	}
	from, err := parseRevision(options.ResourceVersion)
	if err != nil {
		return unexplained(err.Error())
	}
	if enc.protobuf {
		return statusError(http.StatusNotAcceptable, metav1.StatusReasonNotAcceptable, "watches are served in application/json only")
	}
	initial := from == 0
	if options.SendInitialEvents != nil {
		initial = *options.SendInitialEvents
		if current := s.store.Revision(); from > current {
			return tooLarge(from, current)
		}
	}
	s.counters.watch(req.attributes.resource, +1)
	defer s.counters.watch(req.attributes.resource, -1)
	watch := &watcher{
		server: s, target: t, request: req, selection: sel, encoder: enc,
		bookmarks: options.AllowWatchBookmarks,
		w:         w, control: http.NewResponseController(w),
		cursor: from,
	}
	if from == 0 && !initial {
		watch.cursor = s.store.Revision()
	}
	timeout := minWatchTimeout + rand.N(minWatchTimeout)
	if options.TimeoutSeconds != nil && *options.TimeoutSeconds > 0 {
		timeout = time.Duration(*options.TimeoutSeconds) * time.Second
	}
	w.Header().Set("Content-Type", enc.contentType())
	w.Header().Set("Cache-Control", "no-cache, private")
	w.WriteHeader(http.StatusOK)
	watch.run(r.Context(), initial, options.SendInitialEvents != nil && initial, timeout)
	return nil
}

func (w *watcher) run(ctx context.Context, initial, markEnd bool, timeout time.Duration) {
	end := time.NewTimer(timeout)
	defer end.Stop()
	bookmark := time.NewTicker(w.server.options.BookmarkInterval)
	defer bookmark.Stop()

	if initial {
		w.survived = w.server.faults.find(Expired, w.request.attributes)
		w.initial(markEnd)
	}
	if w.flush() != nil {
		return
	}
	for {
		serverChanged := w.server.changed.wait()
		if w.interrupted(ctx) != nil {
			return
		}
		written, err := w.catchUp()
		if err != nil {
			return
		}
		select {
		case <-written:
		case <-serverChanged:
		case <-bookmark.C:
			if w.bookmark(nil) != nil {
				return
			}
		case <-end.C:
			_ = w.bookmark(nil) // The watch ends in any case.
			return
		case <-ctx.Done():
			return
		}
	}
}

// initial adds an event for every object.
func (w *watcher) initial(markEnd bool) {
	records, revision := w.server.store.List(w.target.Resource.Storage(), w.target.Namespace)
	for _, rec := range records {
		if w.selection.shows(rec) {
			w.add(watch.Added, rec)
		}
	}
	w.cursor = revision
	if markEnd && w.bookmarks {
		w.addBookmark(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
	}
}

// interrupted returns an error if the watch has to end. It waits while the server
// hangs.
func (w *watcher) interrupted(ctx context.Context) error {
	// As in a real server, any change of a definition ends the watches of its resource.
	served := w.server.catalog.Load().Find(w.target.Resource.GroupVersionResource())
	if served == nil || served.Definition != w.target.Resource.Definition {
		return errWatchEnds
	}
	if expired := w.server.faults.find(Expired, w.request.attributes); expired != nil && expired != w.survived {
		return w.expire()
	}
	for {
		hang := w.server.faults.find(Hang, w.request.attributes)
		if hang == nil {
			return nil
		}
		select {
		case <-hang.lifted:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// catchUp sends the events since the cursor, and returns a channel that is closed
// at the next write.
func (w *watcher) catchUp() (<-chan struct{}, error) {
	events, upTo, written, err := w.server.store.Since(w.target.Resource.Storage(), w.cursor)
	if err != nil {
		return nil, w.expire()
	}
	for _, event := range events {
		w.translate(event)
	}
	if upTo > w.cursor {
		w.cursor = upTo
	}
	return written, w.flush()
}

// translate adds the event that a write is to the selection.
func (w *watcher) translate(event store.Event) {
	before := event.Previous != nil && w.selection.shows(event.Previous)
	after := !event.Deleted && w.selection.shows(event.Object)
	switch {
	case before && after:
		w.add(watch.Modified, event.Object)
	case after:
		w.add(watch.Added, event.Object)
	case before && event.Deleted:
		w.add(watch.Deleted, event.Object)
	case before:
		// The client may see only the previous state.
		w.addDeselected(event)
	}
}

func (w *watcher) add(kind watch.EventType, rec *store.Record) {
	raw, err := w.encoder.json(rec)
	if err != nil {
		w.addError(err)
		return
	}
	_ = w.encoder.event(&w.buffer, string(kind), raw) // A buffer takes everything.
}

// addDeselected adds the deletion of an object that is no longer selected: its
// previous state at the present revision.
func (w *watcher) addDeselected(event store.Event) {
	object, err := Decode(event.Previous, w.target.Resource)
	if err != nil {
		w.addError(err)
		return
	}
	d, err := draft(object)
	if err != nil {
		w.addError(err)
		return
	}
	w.add(watch.Deleted, d.Preview(event.Object.Revision))
}

func (w *watcher) addError(err error) {
	raw, marshalErr := json.Marshal(statusOf(err))
	if marshalErr == nil {
		_ = w.encoder.event(&w.buffer, string(watch.Error), raw)
	}
}

// expire ends the watch with 410, so that the client lists again.
func (w *watcher) expire() error {
	w.addError(apierrors.NewResourceExpired(fmt.Sprintf("too old resource version: %d (%d)", w.cursor, w.server.store.Revision())))
	if err := w.flush(); err != nil {
		return err
	}
	return errWatchEnds
}

func (w *watcher) addBookmark(annotations map[string]string) {
	object := metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{Kind: w.target.Resource.Kind, APIVersion: w.target.Resource.GroupVersion().String()},
		ObjectMeta: metav1.ObjectMeta{ResourceVersion: formatRevision(w.cursor), Annotations: annotations},
	}
	if w.encoder.partial {
		object.TypeMeta = metav1.TypeMeta{Kind: "PartialObjectMetadata", APIVersion: metav1.SchemeGroupVersion.String()}
	}
	raw, err := json.Marshal(&object)
	if err != nil {
		w.addError(err)
		return
	}
	_ = w.encoder.event(&w.buffer, string(watch.Bookmark), raw)
}

func (w *watcher) bookmark(annotations map[string]string) error {
	if !w.bookmarks {
		return nil
	}
	w.addBookmark(annotations)
	return w.flush()
}

// flush sends the events that were added. It fails if the client does not read
// them in time.
func (w *watcher) flush() error {
	if err := w.control.SetWriteDeadline(time.Now().Add(w.server.options.WatchWriteTimeout)); err != nil {
		return err
	}
	if w.buffer.Len() > 0 {
		if _, err := w.w.Write(w.buffer.Bytes()); err != nil {
			return err
		}
		w.buffer.Reset()
	}
	if err := w.control.Flush(); err != nil {
		return err
	}
	return w.control.SetWriteDeadline(time.Time{})
}
