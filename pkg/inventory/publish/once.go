// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/rollcall-dev/rollcall/pkg/inventory"
)

// Once lists the source and the hub, probes each cluster once, writes what differs,
// and removes what the source does not list. It does not retry: the status of a
// profile that cannot be written is Failed. The error is that of a source or a hub
// that could not be listed before the context ended; then nothing was written.
// FailureThreshold and WriteInterval are not used.
func (p *Publisher) Once(ctx context.Context) ([]Status, error) { return p.once(ctx, false) }

// DryRun returns what Once would do. The API server checks the requests, but stores
// nothing.
func (p *Publisher) DryRun(ctx context.Context) ([]Status, error) { return p.once(ctx, true) }

func (p *Publisher) once(ctx context.Context, dryRun bool) ([]Status, error) {
	w, err := newWriter(p.options.Hub, p.options.Namespace)
	if err != nil {
		return nil, fmt.Errorf("publish: %w", err)
	}
	defer w.close()
	w.dryRun = dryRun
	r := newRun(ctx, p, w)
	r.once = true
	var listing sync.WaitGroup
	var sourceErr, hubErr error
	listing.Go(func() { sourceErr = list(ctx, p.options.Source, sourceSink{r}) })
	listing.Go(func() { hubErr = list(ctx, p.hub, hubSink{r}) })
	listing.Wait()
	if sourceErr != nil {
		sourceErr = fmt.Errorf("the source was not listed: %w", sourceErr)
	}
	if hubErr != nil {
		hubErr = fmt.Errorf("the profiles in the hub were not listed: %w", hubErr)
	}
	if err := errors.Join(sourceErr, hubErr); err != nil {
		return nil, fmt.Errorf("publish: %w", err)
	}
	var mu sync.Mutex // guards all
	var all [][]Status
	for _, name := range r.table.names() {
		if !r.table.concerns(name) {
			continue
		}
		r.running.Go(func() {
			status := newWorker(r, name).once()
			mu.Lock()
			defer mu.Unlock()
			all = append(all, status)
		})
	}
	r.wait()
	return sorted(all), nil
}

// list runs the source until it has synced.
func list(ctx context.Context, source inventory.Source, sink inventory.Sink) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	synced := errors.New("synced")
	err := source.Run(ctx, syncedSink{sink, func() { cancel(synced) }})
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, synced):
		return nil
	case cause != nil:
		return cause
	case err == nil:
		return errors.New("the source has returned early")
	}
	return err
}

// syncedSink calls a function when it is synced.
type syncedSink struct {
	inventory.Sink
	synced func()
}

func (s syncedSink) Synced() {
	s.Sink.Synced()
	s.synced()
}

// once does what is to be done for the name.
func (w *worker) once() []Status {
	v := w.r.view(w.name)
	outcome, err := w.publishOnce(&v)
	message := ""
	if err != nil {
		outcome, message = outcomeOf(err), err.Error()
	}
	return statuses(w.name, &v, outcome, message)
}

func (w *worker) publishOnce(v *view) (Outcome, error) {
	if v.source == nil {
		if v.published.DeletionTimestamp != nil {
			return Removed, nil
		}
		err := w.r.writer.remove(w.r.ctx, v.published)
		if apierrors.IsNotFound(err) {
			err = nil
		}
		return Removed, err
	}
	if err := w.r.options.refuseForeign(v.published); err != nil {
		return "", err
	}
	if v.published != nil && v.published.DeletionTimestamp != nil {
		return "", errors.New("the profile is being deleted")
	}
	if w.r.options.Probe != nil {
		result, _ := w.r.prober.start(w.r.ctx, v.source)
		select {
		case observed := <-result:
			w.observed = &observed
		case <-w.r.ctx.Done():
			return "", w.r.ctx.Err()
		}
	}
	p, err := w.r.options.plan(v.source, v.published, &w.last, w.observed, time.Now(), false)
	if err != nil {
		return "", err
	}
	changed, err := w.r.writer.write(w.r.ctx, p, v.published, &w.last, w.r.options)
	switch {
	case err != nil:
		log.FromContext(w.r.ctx).V(1).Info("Cannot write the profile", "profile", w.name, "error", err.Error())
		return "", err
	case v.published == nil:
		return Created, nil
	case sameContent(changed, v.published):
		return Unchanged, nil
	}
	return Updated, nil
}

// sameContent compares what can be published. A dry run leaves the resource version.
func sameContent(a, b *inventory.Profile) bool {
	return a.Spec == b.Spec && equality.Semantic.DeepEqual(a.Labels, b.Labels) && equality.Semantic.DeepEqual(a.Status, b.Status) &&
		contains(a.Annotations, published(b.Annotations)) && contains(b.Annotations, published(a.Annotations))
}

// published returns the annotations without those that the source of the hub adds.
func published(annotations map[string]string) map[string]string {
	kept := map[string]string{}
	for key, value := range annotations {
		if key != inventory.AnnotationNamespaceClusterSet && key != inventory.AnnotationSource {
			kept[key] = value
		}
	}
	return kept
}
