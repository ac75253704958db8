// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/rollcall-dev/rollcall/pkg/inventory"
	"github.com/rollcall-dev/rollcall/pkg/mc/fleet/internal/admission"
	"github.com/rollcall-dev/rollcall/pkg/mc/fleet/internal/identity"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
)

// Options are the same for all workers of a fleet. All but Claims are required.
type Options struct {
	Backend   Backend
	Aware     multicluster.Aware // which clusters are engaged with
	Limiter   *admission.Limiter
	Throttles *Throttles
	Stopped   *StoppedWorkers
	Claims    *Claims // nil to engage clusters with several profiles several times
	Clock     clock.WithTickerAndDelayedExecution

	ConnectTimeout         time.Duration
	MinBackoff, MaxBackoff time.Duration

	ProbeInterval         time.Duration // negative for no probes
	ProbeTimeout          time.Duration
	ProbeFailureThreshold int
	DropAfter             time.Duration

	// Transition is called for each change of a cluster's state.
	Transition func(State, Reason)

	// IdentityChanged is called when the profile of an engaged cluster leads to another
	// cluster. It must not block.
	IdentityChanged func(*Worker)
}

// Worker keeps the cluster of one profile connected, unless another worker has that
// cluster. The goroutine of Run owns the state; the other methods may be called
// concurrently.
type Worker struct {
	*Options
	name     multicluster.ClusterName
	standby  bool // the name is that of another worker, so it engages nothing
	log      logr.Logger
	throttle *Throttle // used by Run, after the previous worker's Run
	lost     bool      // used by Run: the cluster was engaged before

	ctx  context.Context // ends when the profile is removed or the fleet stops
	stop context.CancelFunc
	done chan struct{} // closed when Run has returned

	own     atomic.Pointer[inventory.Profile] // the latest version
	source  atomic.Pointer[Worker]            // whose profile is in use, nil for its own; set by Claims
	tried   []*Worker                         // whose profiles have failed since the last success
	changed chan struct{}                     // receives a value after changes
	recheck atomic.Bool                       // credentials may have changed
	attempt atomic.Pointer[attempt]           // under way, nil if there is none
	engaged atomic.Pointer[Cluster]           // nil if there is none
	status  atomic.Pointer[Status]            // written by Run's goroutine
}

// New returns a worker. It does nothing before Run.
func New(ctx context.Context, options *Options, name multicluster.ClusterName, profile *inventory.Profile) *Worker {
	return newWorker(ctx, options, name, profile, false)
}

// NewStandby returns a worker for another profile of the cluster whose worker has the
// name. It engages nothing.
func NewStandby(ctx context.Context, options *Options, name multicluster.ClusterName, profile *inventory.Profile) *Worker {
	return newWorker(ctx, options, name, profile, true)
}

func newWorker(ctx context.Context, options *Options, name multicluster.ClusterName, profile *inventory.Profile, standby bool) *Worker {
	w := &Worker{
		Options: options,
		name:    name,
		standby: standby,
		log:     log.FromContext(ctx).WithValues("cluster", name),
		changed: make(chan struct{}, 1),
		done:    make(chan struct{}),
	}
	if !standby {
		w.throttle = options.Throttles.Acquire(name, options.Clock.Now())
	} else {
		w.throttle = NewThrottle(options.MinBackoff, options.MaxBackoff)
	}
	w.ctx, w.stop = context.WithCancel(log.IntoContext(ctx, w.log))
	w.own.Store(profile)
	w.status.Store(&Status{Name: name, State: Pending, Reason: Added, Since: options.Clock.Now()})
	options.Claims.add(w)
	return w
}

// Profile returns the latest version of the profile in use: its own, or another one
// of the same cluster. It must not be changed.
func (w *Worker) Profile() *inventory.Profile { return w.profileOf(w.source.Load()) }

// Own returns the latest version of the worker's profile. It must not be changed.
func (w *Worker) Own() *inventory.Profile { return w.own.Load() }

func (w *Worker) profileOf(source *Worker) *inventory.Profile {
	if source == nil {
		source = w
	}
	return source.own.Load()
}

// Status returns the current status.
func (w *Worker) Status() Status {
	status := *w.status.Load()
	status.Profile = inventory.KeyOf(w.Profile())
	return status
}

// Engaged returns the engaged cluster, nil if there is none.
func (w *Worker) Engaged() *Cluster { return w.engaged.Load() }

// Stop makes Run disengage the cluster and return. Clusters that are connected later
// under another name wait for that if they are the same.
func (w *Worker) Stop() {
	w.stop()
	w.Stopped.add(w)
	w.Claims.remove(w)
}

// Update passes the latest version of its profile, or another profile of its cluster,
// to the worker.
func (w *Worker) Update(profile *inventory.Profile) {
	w.own.Store(profile)
	w.Claims.update(w) // before the worker looks at its claim
	w.profileInUseChanged()
}

func (w *Worker) profileInUseChanged() {
	w.cancelOutdatedAttempt()
	w.wake()
}

// Recheck makes the worker resolve its profile again.
func (w *Worker) Recheck() {
	for _, worker := range []*Worker{w, w.Claims.usedBy(w)} {
		if worker != nil {
			worker.recheck.Store(true)
			worker.wake()
		}
	}
}

func (w *Worker) wake() {
	select {
	case w.changed <- struct{}{}:
	default: // the worker has not yet received the previous one
	}
}

// Run keeps the cluster connected until Stop. It starts when the previous worker
// of the same cluster name, which may be nil, has returned.
func (w *Worker) Run(previous *Worker) {
	defer w.end()
	w.begin(previous)
	priority := admission.New
	for stoodBy := false; w.ctx.Err() == nil; {
		if w.standBy() {
			priority, stoodBy = admission.Failed, true
			continue
		}
		if stoodBy { // its profile has changed, or another one
			stoodBy = false
			w.waitRetry(w.Profile(), w.throttle.UntilChange(w.Clock.Now()), true)
			continue
		}
		slot, err := w.Limiter.Acquire(w.ctx, priority, w.waitingForSlot)
		if err != nil {
			break // the worker has been stopped
		}
		used, err := w.connectAndServe(slot)
		retryAfter := w.ended(err)
		if cl := w.engaged.Load(); cl != nil {
			w.lost = true
			w.disengage(cl)
		}
		w.Claims.released(w)
		priority = admission.Failed
		if w.waitRetry(used, retryAfter, isChange(err)) {
			priority = admission.New
		}
	}
}

// begin and end are not part of Run, whose stack frame lives as long as the worker.
func (w *Worker) begin(previous *Worker) {
	w.logTransition(Pending, Added, func(log logr.Logger) { log.V(1).Info("Cluster added") })
	if previous != nil {
		w.setReason(DuplicateName)
		<-previous.done
	}
	if w.throttle.Begin() {
		delay := w.throttle.UntilChange(w.Clock.Now())
		if delay > 0 {
			w.setStatus(Backoff, Added, "the profile was removed and added again too often", func(log logr.Logger) {
				log.Info("Profile removed and added too often, waiting before connecting", "retryAfter", rounded(delay))
			})
		}
		w.waitRetry(w.Profile(), delay, true)
	}
}

func (w *Worker) end() {
	w.Claims.remove(w) // also when the fleet stops
	if !w.standby {
		w.Throttles.Release(w.name, w.Clock.Now())
	}
	close(w.done)
	w.Stopped.remove(w)
}

// ended updates the status after an attempt or a session, and returns how long to
// wait before the next attempt.
func (w *Worker) ended(err error) (retryAfter time.Duration) {
	untilChange := w.throttle.UntilChange(w.Clock.Now())
	mismatch, identityChanged := errors.AsType[*identityError](err)
	duplicate, isDuplicate := errors.AsType[*duplicateError](err)
	switch {
	case w.ctx.Err() != nil:
		w.setStatus(Leaving, Removed, "", func(log logr.Logger) { log.V(1).Info("Disengaging cluster") })
	case isDuplicate:
		w.setDuplicate(duplicate.of)
	case isChange(err) && untilChange > 0:
		retryAfter = untilChange
		w.setStatus(Backoff, reasonOf(err), err.Error(), func(log logr.Logger) {
			log.Info("Cluster changes too often, waiting before reconnecting", "error", err.Error(), "retryAfter", rounded(retryAfter))
		})
	case identityChanged:
		w.IdentityChanged(w)
		w.setStatus(Pending, IdentityChanged, err.Error(), func(log logr.Logger) {
			log.Info("Cluster identity changed or cannot be verified, re-engaging",
				"oldIdentity", mismatch.old.String(), "newIdentity", mismatch.new.String())
		})
	case errors.Is(err, errCannotSwitch):
		w.setStatus(Pending, AccessChanged, err.Error(), func(log logr.Logger) {
			log.Info("Access changed and the connection cannot be switched, re-engaging")
		})
	case isChange(err):
		w.setStatus(Pending, AccessChanged, w.Status().LastError, func(log logr.Logger) {
			log.V(1).Info("Access changed while connecting, reconnecting")
		})
	default:
		retryAfter = w.delayUntilNext(err)
		message := "Cannot connect cluster, retrying"
		if w.engaged.Load() != nil {
			message = "Cluster lost, disengaging and reconnecting"
		}
		w.setStatus(Backoff, reasonOf(err), err.Error(), func(log logr.Logger) {
			log.Info(message, "error", err.Error(), "retryAfter", rounded(retryAfter))
		})
	}
	return retryAfter
}

// delay returns the delay after a failed attempt: that of the backoff or, up to
// MaxBackoff, the longer one that the cluster asks for.
func (w *Worker) delay(backoff time.Duration, err error) time.Duration {
	return max(backoff, min(identity.RetryAfter(err), w.MaxBackoff))
}

// delayUntilNext returns the delay after a failed attempt: none if there is another
// profile of the cluster that has not been tried.
func (w *Worker) delayUntilNext(err error) time.Duration {
	if w.tryNext() {
		return 0
	}
	return w.delay(w.throttle.Failed(), err)
}

// waitRetry waits for the delay, or until a change that may be followed: of the
// profile since the version used, other than a heartbeat, of another profile of its
// cluster, or of credentials. It reports whether the next attempt follows a change.
func (w *Worker) waitRetry(used *inventory.Profile, delay time.Duration, changed bool) bool {
	until := w.Clock.Now().Add(delay)
	timer := w.Clock.NewTimer(delay)
	defer timer.Stop()
	var others map[*Worker]string
	if delay > 0 {
		others = w.accesses()
	}
	for waiting := delay > 0; waiting; {
		select {
		case <-w.ctx.Done():
			return false
		case <-timer.C():
			waiting = false
		case <-w.changed:
			other := w.useChanged(others)
			if !w.recheck.Swap(false) && !other && isHeartbeat(used, w.Profile()) {
				continue
			}
			now := w.Clock.Now()
			if sooner := w.throttle.UntilChange(now); now.Add(sooner).Before(until) {
				until, changed = now.Add(sooner), true
				timer.Reset(sooner)
				waiting = sooner > 0
			}
		}
	}
	if w.ctx.Err() != nil {
		return false
	}
	if changed {
		w.throttle.FollowChange(w.Clock.Now())
	}
	return changed
}

// waitingForSlot updates the status while the limiter has no free slot.
func (w *Worker) waitingForSlot() {
	if w.Status().State == Connecting { // the cluster has responded, but lost its slot
		w.setReason(WaitingForStartupSlot)
		return
	}
	w.setStatus(Pending, WaitingForStartupSlot, w.Status().LastError, func(log logr.Logger) {
		log.V(1).Info("Waiting for a startup slot")
	})
}

// setStatus sets the state, its reason and the last error, and logs a new state.
func (w *Worker) setStatus(state State, reason Reason, lastError string, logState func(logr.Logger)) {
	next := w.Status()
	isNew := next.State != state
	next.State, next.Reason, next.LastError = state, reason, lastError
	if state != Ready && state != Degraded {
		next.AccessError = ""
	}
	if isNew {
		next.Since = w.Clock.Now()
	}
	w.status.Store(&next)
	if isNew {
		w.logTransition(state, reason, logState)
	}
}

// setAccessError shows why the latest access cannot be used.
func (w *Worker) setAccessError(err error) {
	next := w.Status()
	next.AccessError = ""
	if err != nil {
		next.AccessError = err.Error()
	}
	w.status.Store(&next)
}

// setReason sets another reason for the same state.
func (w *Worker) setReason(reason Reason) { w.setWaiting(reason, w.Status().LastError) }

// setWaiting sets another reason for the same state, and the last error.
func (w *Worker) setWaiting(reason Reason, lastError string) {
	next := w.Status()
	next.Reason, next.LastError = reason, lastError
	w.status.Store(&next)
}

// setConnection shows in the status how the cluster is reached.
func (w *Worker) setConnection(conn Connection, uid string) {
	next := w.Status()
	next.Server, next.Provider, next.UID = conn.Server(), conn.Provider(), uid
	w.status.Store(&next)
}

// logTransition logs and counts a new state.
func (w *Worker) logTransition(state State, reason Reason, logState func(logr.Logger)) {
	w.Transition(state, reason)
	logState(w.log.WithValues("state", state, "reason", reason))
}

// rounded formats a duration for logs.
func rounded(d time.Duration) string { return d.Round(time.Millisecond).String() }
