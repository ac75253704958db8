// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/rollcall-dev/rollcall/pkg/inventory"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
)

// keeper keeps one cluster. Its goroutine, run, owns the cluster's state;
// everybody else reads engaged and status, and tells it of profiles.
type keeper struct {
	fleet *Fleet
	aware multicluster.Aware
	name  multicluster.ClusterName
	log   logr.Logger

	// ctx ends when the cluster's profile goes or the fleet ends.
	ctx   context.Context
	leave context.CancelFunc

	// latest is the profile to keep to; changed holds a token when there is news.
	latest  atomic.Pointer[inventory.Profile]
	changed chan struct{}
	// recheck is set with changed if credentials have changed.
	recheck atomic.Bool
	// trying is the attempt that is made to reach the cluster, nil if none is.
	trying atomic.Pointer[attempt]

	engaged atomic.Pointer[member]
	status  atomic.Pointer[ClusterStatus]

	// restraint bounds how often a change is followed.
	restraint restraint

	// predecessor kept another profile's cluster under the same name and ends
	// first.
	predecessor *keeper
	done        chan struct{}
}

func newKeeper(ctx context.Context, f *Fleet, aware multicluster.Aware, name multicluster.ClusterName, profile *inventory.Profile) *keeper {
	k := &keeper{
		fleet: f, aware: aware, name: name,
		log:       log.FromContext(ctx).WithValues("cluster", name),
		changed:   make(chan struct{}, 1),
		done:      make(chan struct{}),
		restraint: restraint{min: f.options.Connection.MinBackoff, max: f.options.Connection.MaxBackoff},
	}
	k.ctx, k.leave = context.WithCancel(log.IntoContext(ctx, k.log))
	k.latest.Store(profile)
	k.status.Store(&ClusterStatus{Name: name, Profile: inventory.KeyOf(profile), State: Pending, Reason: Added, Since: f.options.Connection.Clock.Now()})
	return k
}

// put tells the keeper of the profile's latest version.
func (k *keeper) put(profile *inventory.Profile) {
	k.latest.Store(profile)
	k.supersede(profile)
	k.wake()
}

// credentialsChanged tells the keeper that the same profile may lead another
// way now.
func (k *keeper) credentialsChanged() {
	k.recheck.Store(true)
	k.wake()
}

func (k *keeper) wake() {
	select {
	case k.changed <- struct{}{}:
	default: // it has yet to look at the change before
	}
}

// run keeps the cluster until the keeper's context ends.
func (k *keeper) run() {
	defer close(k.done)
	k.arrived(Pending, Added, func(log logr.Logger) { log.V(1).Info("Cluster is on the roll") })
	if k.predecessor != nil {
		k.setReason(WaitingForName)
		<-k.predecessor.done
		k.predecessor = nil
	}
	backoff := k.newBackoff()
	next := untried
	for k.ctx.Err() == nil {
		p, err := k.fleet.gate.admit(k.ctx, next, k.queued)
		if err != nil {
			break // the keeper's context has ended
		}
		a := k.try()
		var retry time.Duration
		used := a.profile
		m, err := k.connect(a, p)
		k.end(a)
		if err != nil {
			p.leave()
			retry = k.lost(err, &backoff)
		} else {
			since := k.fleet.options.Connection.Clock.Now()
			err = serve(k, m)
			if k.fleet.options.Connection.Clock.Since(since) > k.fleet.options.Connection.MaxBackoff {
				backoff = k.newBackoff()
			}
			used = m.profile.Load()
			retry = k.lost(err, &backoff)
			k.disengage(m)
		}
		next = failed
		if k.awaitRetry(used, retry, isChange(err)) {
			backoff = k.newBackoff()
			next = untried
		}
	}
}

// isChange tells whether that ended an attempt or an engagement which another
// one is to follow at once.
func isChange(err error) bool {
	return errors.Is(err, errSuperseded) || errors.Is(err, errOtherCluster)
}

// lost notes why there is no cluster to be engaged, or not for long, and returns
// how long to wait before the next attempt.
func (k *keeper) lost(err error, backoff *wait.Backoff) (retry time.Duration) {
	now := k.fleet.options.Connection.Clock.Now()
	switch {
	case k.ctx.Err() != nil:
		k.setStatus(Leaving, Left, "", func(log logr.Logger) { log.V(1).Info("Cluster is leaving") })
	case isChange(err) && k.restraint.delay(now) > 0:
		retry = k.restraint.delay(now)
		k.setStatus(Backoff, reasonOf(err), err.Error(), func(log logr.Logger) {
			log.Info("Cluster changes too often, trying again", "error", err.Error(), "after", retry.Round(time.Millisecond).String())
		})
	case errors.Is(err, errSuperseded):
		k.setStatus(Pending, AccessChanged, k.status.Load().LastError, func(log logr.Logger) { log.V(1).Info("Cluster is connected in another way") })
	case errors.Is(err, errOtherCluster):
		k.setStatus(Pending, OtherCluster, err.Error(), func(log logr.Logger) { log.Info("Cluster is engaged anew", "error", err.Error()) })
	default:
		retry = backoff.Step()
		k.setStatus(Backoff, reasonOf(err), err.Error(), func(log logr.Logger) {
			log.Info("Cluster cannot be reached or used, trying again", "error", err.Error(), "after", retry.Round(time.Millisecond).String())
		})
	}
	return retry
}

func (k *keeper) newBackoff() wait.Backoff {
	return newBackoff(k.fleet.options.Connection.MinBackoff, k.fleet.options.Connection.MaxBackoff)
}

func newBackoff(first, limit time.Duration) wait.Backoff {
	return wait.Backoff{Duration: first, Factor: 2, Jitter: 0.2, Steps: 32, Cap: limit}
}

// awaitRetry waits for the delay, or less if the profile says anything else than
// the one used last or credentials have changed. It tells whether a change is
// followed, which may have been so before.
func (k *keeper) awaitRetry(used *inventory.Profile, delay time.Duration, changed bool) bool {
	clock := k.fleet.options.Connection.Clock
	until := clock.Now().Add(delay)
	timer := clock.NewTimer(delay)
	defer timer.Stop()
	for waits := delay > 0; waits; {
		select {
		case <-k.ctx.Done():
			return false
		case <-timer.C():
			waits = false
		case <-k.changed:
			if !k.recheck.Swap(false) && isHeartbeat(used, k.latest.Load()) {
				continue
			}
			now := clock.Now()
			if sooner := k.restraint.delay(now); now.Add(sooner).Before(until) {
				until, changed = now.Add(sooner), true
				timer.Reset(sooner)
				waits = sooner > 0
			}
		}
	}
	if changed {
		k.restraint.follow(clock.Now())
	}
	return changed
}

// queued notes that the cluster waits for a place in the gate.
func (k *keeper) queued() {
	last := k.status.Load()
	if last.State == Connecting { // it has answered
		k.setReason(WaitingForPlace)
		return
	}
	k.setStatus(Pending, WaitingForPlace, last.LastError, func(log logr.Logger) { log.V(1).Info("Cluster waits for a place") })
}

// setStatus notes the state, its reason, and what failed last, "" for nothing.
// It says so if the state is another one.
func (k *keeper) setStatus(state State, reason Reason, lastError string, say func(logr.Logger)) {
	last := *k.status.Load()
	next := last
	next.Reason, next.LastError = reason, lastError
	if last.State == state {
		k.status.Store(&next)
		return
	}
	next.State, next.Since = state, k.fleet.options.Connection.Clock.Now()
	k.status.Store(&next)
	k.arrived(state, reason, say)
}

// setReason notes another reason for the state.
func (k *keeper) setReason(reason Reason) {
	next := *k.status.Load()
	next.Reason = reason
	k.status.Store(&next)
}

// arrived counts a transition and logs it, each once.
func (k *keeper) arrived(state State, reason Reason, say func(logr.Logger)) {
	transitions.WithLabelValues(string(state), string(reason)).Inc()
	say(k.log.WithValues("state", state, "reason", reason))
}

// note takes down how the cluster is reached, and who it is as far as that is
// known.
func (k *keeper) note(way *approach) {
	next := *k.status.Load()
	next.Server, next.Provider, next.UID = way.server, way.provider, way.identity.uid
	k.status.Store(&next)
}

// report returns the status with what is looked up when it is asked for. It
// may be called from any goroutine.
func (k *keeper) report() ClusterStatus {
	status, profile := *k.status.Load(), k.latest.Load()
	status.describe(profile)
	if m := k.engaged.Load(); m != nil {
		status.OpenWatches = int(m.transport.watches.Load())
		if t := m.transport.current.Load(); t != nil && t.expiry != nil {
			status.CredentialExpiry, _ = t.expiry()
		}
		status.Queued = m.engagement.Backlog()
	}
	return status
}
