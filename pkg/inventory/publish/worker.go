// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/rollcall-dev/rollcall/pkg/inventory"
)

// watchTimeout is how long the watch of the hub may take to send a write.
const watchTimeout = 10 * time.Second

// worker keeps one profile of the hub in step with the source, or removes it. Only
// its goroutine uses the fields.
type worker struct {
	r    *run
	name string
	wake chan struct{} // the table may have changed
	log  logr.Logger

	probe    probing
	observed *observation
	failures int // probes in a row whose result does not count yet

	pace      pace
	last      applied
	messageAt time.Time // when messages were last published

	written      *inventory.Profile // by the last write, until the watch has sent it
	writtenUntil time.Time

	backoff *wait.Backoff // nil after a success
	retryAt time.Time
	failed  string // what was logged last

	removedUntil time.Time // when the watch must have sent the removal
	duplicates   []string  // as logged last
}

// probing is the schedule of a cluster's probes.
type probing struct {
	key    string // of what is probed
	next   time.Time
	result <-chan observation
	ended  <-chan struct{} // nil if none runs
	cancel context.CancelFunc
}

func newWorker(r *run, name string) *worker {
	return &worker{
		r: r, name: name, wake: make(chan struct{}, 1), log: log.FromContext(r.ctx).WithValues("profile", name),
		probe: probing{cancel: func() {}}, pace: pace{interval: r.options.WriteInterval}, messageAt: time.Now(),
	}
}

func (w *worker) notify() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

func (w *worker) run() {
	defer func() { w.probe.cancel() }()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		v := w.r.view(w.name)
		if next := w.step(&v); !next.IsZero() {
			timer.Reset(time.Until(next))
		} else {
			timer.Stop()
		}
		if v.source == nil && w.r.leave(w) {
			w.r.publisher.setStatus(w.name, nil)
			return
		}
		select {
		case <-w.r.ctx.Done():
			return
		case <-w.wake:
		case <-timer.C:
		case <-w.probe.ended:
			w.probe.ended = nil
			if w.probe.result == nil { // it was stopped
				w.probe.next = time.Time{}
			}
			w.takeResult(&v)
		case observed := <-w.probe.result:
			w.take(&v, observed)
		}
	}
}

// step does what is due. It returns when to call it again if nothing happens, or zero.
func (w *worker) step(v *view) (next time.Time) {
	now := time.Now()
	current := w.current(v.published, now)
	if v.source == nil {
		w.stopProbe()
		if v.ready && current != nil && w.r.options.isOwn(current) && current.DeletionTimestamp == nil {
			return w.remove(current, now)
		}
		return time.Time{}
	}
	w.logDuplicates(v)
	if err := w.r.options.refuseForeign(v.published); v.ready && err != nil {
		w.stopProbe()
		w.refuse(v, err)
		return time.Time{}
	}
	w.startProbe(v.source, now)
	next = w.probe.next
	if !v.ready || w.r.options.Probe != nil && w.observed == nil || current != nil && current.DeletionTimestamp != nil {
		return next
	}
	if w.retryAt.After(now) {
		return earlier(next, w.retryAt)
	}
	newMessages := now.Sub(w.messageAt) >= w.r.options.HeartbeatInterval
	p, err := w.r.options.plan(v.source, current, &w.last, w.observed, now, newMessages)
	if err != nil {
		w.refuse(v, err)
		return next
	}
	if p.muted {
		next = earlier(next, w.messageAt.Add(w.r.options.HeartbeatInterval))
	}
	if p.empty() {
		w.succeeded(v, Unchanged)
		return next
	}
	if due := w.pace.due(p.urgent); due.After(now) && !p.unknown {
		return earlier(next, due)
	}
	return earlier(next, w.write(v, p, current, now))
}

// write carries out the plan. It returns when to try again, or zero.
func (w *worker) write(v *view, p *plan, current *inventory.Profile, now time.Time) (next time.Time) {
	changed, err := w.r.writer.write(w.r.ctx, p, current, &w.last, w.r.options)
	outcome := Updated
	switch {
	case current == nil:
		outcome = Created
	case changed.ResourceVersion == current.ResourceVersion:
		outcome = Unchanged
	}
	if changed != nil && outcome != Unchanged {
		w.pace.wrote(now)
		w.written, w.writtenUntil = changed, time.Now().Add(watchTimeout)
		if p.status {
			w.messageAt = now
		}
	}
	if err != nil {
		return w.fail(v, err)
	}
	w.r.hubResponds(true, nil)
	writes.WithLabelValues(string(outcome)).Inc()
	switch outcome {
	case Created:
		w.log.Info("Profile created", "cluster", inventory.ClusterName(v.source))
	case Updated:
		w.log.V(1).Info("Profile updated", "cluster", inventory.ClusterName(v.source))
	}
	w.succeeded(v, outcome)
	w.notify() // what is due next
	return time.Time{}
}

// remove deletes the profile. It returns when to try again.
func (w *worker) remove(current *inventory.Profile, now time.Time) (next time.Time) {
	if next := later(w.retryAt, w.removedUntil); next.After(now) {
		return next
	}
	if err := w.r.writer.remove(w.r.ctx, current); err != nil && !apierrors.IsNotFound(err) {
		return w.fail(&view{published: current}, err)
	}
	w.r.hubResponds(true, nil)
	writes.WithLabelValues(string(Removed)).Inc()
	w.log.Info("Profile removed, the source does not list its cluster", "cluster", inventory.ClusterName(current))
	w.written, w.backoff = nil, nil
	w.retryAt, w.removedUntil = time.Time{}, time.Now().Add(watchTimeout)
	return w.removedUntil
}

// current returns the published profile, or what was written and the watch has not
// sent yet.
func (w *worker) current(published *inventory.Profile, now time.Time) *inventory.Profile {
	if w.written == nil {
		return published
	}
	older := published == nil
	if published != nil && published.UID == w.written.UID {
		order, err := resourceversion.CompareResourceVersion(published.ResourceVersion, w.written.ResourceVersion)
		older = err == nil && order < 0
	}
	if !older || now.After(w.writtenUntil) {
		w.written = nil
		return published
	}
	return w.written
}

// startProbe starts a probe if one is due. After a change of the access, what was
// observed before does not count.
func (w *worker) startProbe(source *inventory.Profile, now time.Time) {
	if w.r.options.Probe == nil {
		return
	}
	if key := inventory.KeyOf(source).String() + "\n" + inventory.Fingerprint(source); key != w.probe.key {
		w.stopProbe()
		w.probe.key = key
	}
	if w.probe.next.After(now) {
		return
	}
	if w.probe.ended != nil {
		if w.observed == nil && w.probe.result == nil { // a probe of an earlier access does not return
			w.observed = &observation{ProbeResult{Status: metav1.ConditionUnknown, Reason: ReasonProbeTimedOut, Message: "an earlier probe has not returned"}, now}
		}
		w.probe.next = now.Add(jittered(w.r.options.ProbeInterval))
		return
	}
	w.probe.cancel() // the last probe, which has ended
	ctx, cancel := context.WithCancel(w.r.ctx)
	w.probe.cancel = cancel
	w.probe.result, w.probe.ended = w.r.prober.start(ctx, source)
	w.probe.next = now.Add(jittered(w.r.options.ProbeInterval))
}

// stopProbe forgets what was observed, and ends the probe that runs.
func (w *worker) stopProbe() {
	w.probe.cancel()
	w.probe.key, w.probe.next, w.probe.result = "", time.Time{}, nil
	if w.probe.ended != nil {
		w.probe.next = time.Now().Add(returnTime)
	}
	w.observed, w.failures = nil, 0
}

// takeResult takes the result of a probe that has ended, if it has one.
func (w *worker) takeResult(v *view) {
	select {
	case observed := <-w.probe.result:
		w.take(v, observed)
	default:
	}
}

// take decides whether the result counts: a healthy cluster stays so until several
// probes in a row have found otherwise.
func (w *worker) take(v *view, observed observation) {
	before := w.observed
	if current := w.current(v.published, time.Now()); before == nil && isOf(current, v.source) {
		before = publishedHealth(current)
	}
	if observed.Status == metav1.ConditionTrue || before == nil || before.Status != metav1.ConditionTrue {
		w.observed, w.failures = &observed, 0
		return
	}
	if w.failures++; w.failures >= w.r.options.FailureThreshold {
		w.observed, w.failures = &observed, 0
		return
	}
	w.observed = before
}

// publishedHealth returns what is published as an observation without a time.
func publishedHealth(published *inventory.Profile) *observation {
	condition := meta.FindStatusCondition(published.Status.Conditions, inventory.ConditionControlPlaneHealthy)
	if condition == nil {
		return nil
	}
	return &observation{ProbeResult: ProbeResult{Status: condition.Status, Reason: condition.Reason, Message: condition.Message}}
}

func (w *worker) succeeded(v *view, outcome Outcome) {
	w.backoff, w.retryAt, w.failed = nil, time.Time{}, ""
	w.setStatus(v, outcome, "")
}

func (w *worker) refuse(v *view, err error) {
	if w.failed != err.Error() {
		w.failed = err.Error()
		w.log.Info("Not allowed to publish the profile", "cluster", inventory.ClusterName(v.source), "error", err.Error())
	}
	w.setStatus(v, Refused, err.Error())
}

// fail returns when to try again.
func (w *worker) fail(v *view, err error) time.Time {
	if w.r.ctx.Err() != nil {
		return time.Time{}
	}
	first := w.backoff == nil
	if first {
		w.backoff = &wait.Backoff{Duration: time.Second, Factor: 2, Jitter: 0.2, Steps: 6, Cap: time.Minute}
	}
	delay := w.backoff.Step()
	w.retryAt = time.Now().Add(delay)
	writes.WithLabelValues(string(Failed)).Inc()
	outage := isOutage(err)
	w.r.hubResponds(!outage, err)
	// A conflict may be a race that the next event of the watch ends.
	conflict := apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err)
	if !outage && (!first || !conflict) && w.failed != string(apierrors.ReasonForError(err)) {
		w.failed = string(apierrors.ReasonForError(err))
		w.log.Error(err, "Cannot write the profile, retrying", "retryAfter", delay.Round(time.Millisecond).String())
	}
	w.setStatus(v, Failed, err.Error())
	return w.retryAt
}

// isOutage reports whether the error is not about one profile.
func isOutage(err error) bool {
	var status apierrors.APIStatus
	// Only the namespace or the API can be missing: profiles are applied by their UID.
	return !errors.As(err, &status) || apierrors.IsNotFound(err) || apierrors.IsServiceUnavailable(err) || apierrors.IsTooManyRequests(err) ||
		apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err) || apierrors.IsUnauthorized(err)
}

// logDuplicates logs other clusters of the source with the name.
func (w *worker) logDuplicates(v *view) {
	var names []string
	for _, duplicate := range v.duplicates {
		names = append(names, inventory.ClusterName(duplicate))
	}
	if slices.Equal(names, w.duplicates) {
		return
	}
	w.duplicates = names
	for _, duplicate := range v.duplicates {
		w.log.Info("Duplicate profile name, not publishing this cluster", "cluster", inventory.ClusterName(duplicate), "published", inventory.ClusterName(v.source))
	}
}

func (w *worker) setStatus(v *view, outcome Outcome, message string) {
	w.r.publisher.setStatus(w.name, statuses(w.name, v, outcome, message))
}

func jittered(d time.Duration) time.Duration {
	return d + time.Duration((rand.Float64()-0.5)*0.2*float64(d))
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// earlier returns the earlier time, where zero means never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
