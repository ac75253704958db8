// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"

	"github.com/rollcall-dev/rollcall/pkg/inventory"
	"github.com/rollcall-dev/rollcall/pkg/mc/fleet/internal/admission"
	"github.com/rollcall-dev/rollcall/pkg/mc/fleet/internal/identity"
	"github.com/rollcall-dev/rollcall/pkg/mc/fleet/internal/timing"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
)

// disengageGrace is how long requests to a cluster that is disengaged have to end
// by themselves. It is real time, not that of Options.Clock.
const disengageGrace = time.Second

// attempt is one attempt to connect the cluster of a profile.
type attempt struct {
	profile *inventory.Profile
	source  *Worker         // whose profile it is, nil for the worker's own
	ctx     context.Context // ends at the deadline, or when the profile's access changes
	cancel  context.CancelCauseFunc

	clock    clock.PassiveClock
	deadline time.Time
	timer    clock.Timer
}

// newAttempt begins an attempt with the latest profile. It must be ended. Its
// timeout error names the goal.
func (w *Worker) newAttempt(goal string) *attempt {
	source := w.source.Load()
	a := &attempt{profile: w.profileOf(source), source: source, clock: w.Clock, deadline: w.Clock.Now().Add(w.ConnectTimeout)}
	a.ctx, a.cancel = context.WithCancelCause(w.ctx)
	a.timer = timing.AfterFunc(w.Clock, w.ConnectTimeout, func() {
		a.cancel(&timing.TimeoutError{Missing: goal, Limit: w.ConnectTimeout})
	})
	w.attempt.Store(a)
	w.cancelOutdatedAttempt() // Update may have missed the attempt
	return a
}

func (w *Worker) endAttempt(a *attempt) {
	w.attempt.CompareAndSwap(a, nil)
	a.timer.Stop()
	a.cancel(nil)
}

// cancelOutdatedAttempt cancels the current attempt if the access has changed.
func (w *Worker) cancelOutdatedAttempt() {
	if a := w.attempt.Load(); a != nil && inventory.Fingerprint(a.profile) != inventory.Fingerprint(w.Profile()) {
		a.cancel(errAccessChanged)
	}
}

// untimed runs the function while the attempt's deadline is suspended.
func (a *attempt) untimed(f func() error) error {
	if a.timer.Stop() {
		left := a.deadline.Sub(a.clock.Now())
		defer func() {
			a.deadline = a.clock.Now().Add(left)
			a.timer.Reset(left)
		}()
	}
	return f()
}

// connectAndServe makes one attempt and serves the cluster while it is engaged. It
// returns the version of the profile that was used last, and why there is no
// engaged cluster, or soon will not be.
func (w *Worker) connectAndServe(slot *admission.Slot) (*inventory.Profile, error) {
	a := w.newAttempt("engaged cluster")
	cl, err := w.connect(a, slot)
	w.endAttempt(a)
	if err != nil {
		slot.Release()
		return a.profile, err
	}
	since := w.Clock.Now()
	err = w.serve(cl)
	if w.Clock.Since(since) > w.MaxBackoff {
		w.throttle.Reset()
	}
	return cl.Profile(), err
}

// connect connects and engages the cluster of the attempt's profile. After an error
// nothing of it remains.
func (w *Worker) connect(a *attempt, slot *admission.Slot) (*Cluster, error) {
	started := w.Clock.Now()
	w.setStatus(Connecting, ResolvingAccess, w.Status().LastError, func(log logr.Logger) { log.V(1).Info("Connecting cluster") })
	conn, err := w.Backend.Connect(a.ctx, a.profile)
	if err != nil {
		return nil, withReason(ResolveFailed, withCause(a.ctx, err))
	}
	if w.lost {
		conn.Informers().Interrupted()
	}
	w.setConnection(conn, "")
	w.setReason(CheckingIdentity)
	id, err := w.identify(a.ctx, a.profile, conn)
	if err == nil {
		w.setConnection(conn, id.UID)
		err = w.claim(a.profile, id)
	}
	if err == nil {
		err = a.untimed(func() error {
			if err := w.waitForOther(a.ctx); err != nil {
				return err
			}
			return slot.Confirm(a.ctx)
		})
	}
	if err != nil {
		conn.Release()
		return nil, err
	}

	cl, engaging := w.newCluster(a.profile, conn, id, slot)
	defer engaging.Release()
	// Not everything that follows uses the attempt's context.
	inTime := context.AfterFunc(a.ctx, func() {
		cl.cancel()
		cl.abort()
	})
	err = w.engage(a, cl)
	if !inTime() && err == nil {
		err = context.Cause(a.ctx)
	}
	if err != nil {
		err = withCause(a.ctx, err)
		w.disengage(cl)
		return nil, err
	}
	w.tried = nil
	w.setStatus(Ready, Engaged, "", func(log logr.Logger) {
		log.Info("Cluster engaged", "server", conn.Server(), "accessProvider", conn.Provider(), "duration", rounded(w.Clock.Since(started)))
	})
	return cl, nil
}

// identify returns the identity of the cluster that the connection leads to.
func (w *Worker) identify(ctx context.Context, profile *inventory.Profile, conn Connection) (identity.Identity, error) {
	id := identity.Identity{ClusterID: inventory.ClusterID(profile)}
	if !conn.CanProbe() {
		return id, nil
	}
	uid, err := conn.Probe(ctx)
	if err != nil {
		return id, withReason(probeReason(err), withCause(ctx, err))
	}
	id.UID = uid
	return id, nil
}

// probe probes the connection with a time limit.
func (w *Worker) probe(ctx context.Context, conn Connection) (uid string, err error) {
	if !conn.CanProbe() {
		return "", nil
	}
	ctx, cancel := timing.Within(ctx, w.Clock, w.ProbeTimeout, "response")
	defer cancel()
	if uid, err = conn.Probe(ctx); err != nil {
		err = withCause(ctx, err)
	}
	return uid, err
}

// engage creates, starts and engages the cluster. If the cluster stops, the attempt
// is canceled.
func (w *Worker) engage(a *attempt, cl *Cluster) error {
	w.setStatus(Syncing, SyncingCaches, w.Status().LastError, func(log logr.Logger) {
		log.V(1).Info("Cluster reachable, syncing caches")
	})
	created, err := cl.connection.NewCluster(a.ctx, a.profile)
	if err != nil {
		return withReason(SetupFailed, fmt.Errorf("cannot create the cluster: %w", err))
	}
	cl.Cluster = w.Backend.Indexed(w.name, created)
	cl.start(a.cancel)
	cl.connection.Informers().WaitForSync(a.ctx)
	if !cl.GetCache().WaitForCacheSync(a.ctx) {
		return withReason(CacheSyncTimeout, errors.New(`caches did not sync; see the log lines "Watch failed"`))
	}
	w.setReason(Engaging)
	w.engaged.Store(cl)
	if err := w.Aware.Engage(multicluster.WithEngagement(cl.ctx, cl.engagement), w.name, cl); err != nil {
		return withReason(EngageFailed, fmt.Errorf("cannot engage: %w", err))
	}
	return nil
}

// disengage stops the cluster and waits for it.
func (w *Worker) disengage(cl *Cluster) {
	wasEngaged := w.engaged.Swap(nil) != nil
	cl.cancel()
	cl.connection.Close()
	ended := cl.wait()
	select {
	case <-ended:
		cl.connection.CloseIdle()
	case <-time.After(disengageGrace):
	}
	cl.abort() // ends what ignores its context
	timeout := w.Clock.NewTimer(w.ConnectTimeout)
	defer timeout.Stop()
	select {
	case <-ended:
		if wasEngaged {
			w.log.Info("Cluster disengaged")
		}
	case <-timeout.C():
		w.log.Error(nil, "Timed out stopping cluster, its goroutines may still run", "duration", w.ConnectTimeout.String())
	}
}
