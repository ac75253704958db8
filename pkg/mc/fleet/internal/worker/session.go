// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/rollcall-dev/rollcall/pkg/inventory"
	"github.com/rollcall-dev/rollcall/pkg/mc/fleet/internal/identity"
	"github.com/rollcall-dev/rollcall/pkg/mc/internal/informer"
	"github.com/rollcall-dev/rollcall/pkg/mc/internal/retry"
)

// session is the time in which a cluster is engaged. The worker's goroutine owns
// it, and blocks only in the select statement of serve.
type session struct {
	worker  *Worker
	cluster *Cluster
	health  *health

	reconnect *reconnect // under way, nil if there is none
	// tried is the access key of the profile that was connected last. If that
	// failed, accessErr is the error, the cluster keeps its connection, and retry
	// receives when it is tried again.
	tried     string
	accessErr error
	retry     <-chan time.Time
	backoff   wait.Backoff
	// unauthorized is the error of a probe that counts as a failure unless the
	// reconnect under way finds other credentials. Nil if there is none.
	unauthorized error
	// catchUp is the wait for the caches after the cluster was Degraded, nil if there
	// is none.
	catchUp *catchUp
	// profileUID is the UID of the profile that was last shown to lead to the
	// cluster, and profileKey the key of the one that the connection is made of.
	profileUID types.UID
	profileKey inventory.Key
}

// newSession begins a session. It is not part of serve, whose stack frame lives as
// long as the cluster is engaged.
func (w *Worker) newSession(cl *Cluster) *session {
	profile := cl.Profile()
	s := &session{
		worker: w, cluster: cl, tried: accessKey(profile), profileUID: profile.UID, profileKey: inventory.KeyOf(profile),
		backoff: retry.Backoff(w.MinBackoff, w.MaxBackoff),
		health:  newHealth(w, cl),
	}
	s.tryOwnLater()
	return s
}

// serve follows the profile and monitors the health of an engaged cluster. It
// returns nil when the worker is stopped, and otherwise why the cluster must be
// disengaged.
func (w *Worker) serve(cl *Cluster) error {
	s := w.newSession(cl)
	defer s.end()
	for {
		var err error
		select {
		case <-w.ctx.Done():
			return nil
		case <-cl.stopped:
			return cl.err
		case <-w.changed:
			err = s.profileChanged()
		case <-s.retry:
			s.retryDue()
		case result := <-s.reconnect.results():
			err = s.reconnected(result)
		case <-s.health.due():
			s.health.probe()
		case result := <-s.health.results:
			err = s.probed(result)
		case <-s.catchUp.endedIn():
			s.caughtUp()
		}
		if err != nil {
			return err
		}
	}
}

// end waits for what the session has started.
func (s *session) end() {
	s.stopCatchUp()
	s.cancelReconnect()
	s.health.stop()
}

// profileChanged takes over the latest profile, and reconnects if its access has
// changed.
func (s *session) profileChanged() error {
	profile, inUse := s.worker.Profile(), s.cluster.Profile()
	if s.worker.recheck.Swap(false) || accessKey(profile) != s.tried {
		s.cluster.setProfile(profile)
		s.backoff = retry.Backoff(s.worker.MinBackoff, s.worker.MaxBackoff)
		s.startReconnect()
		return s.worker.claim(inUse, s.cluster.identity) // another worker may have it now
	}
	if s.reconnect == nil && s.accessErr == nil {
		if err := s.adoptClusterID(profile); err != nil {
			return err
		}
		s.profileKey = inventory.KeyOf(profile) // of a source whose profiles have no UID
	}
	s.cluster.setProfile(profile)
	return s.worker.claim(profile, s.cluster.identity)
}

// adoptClusterID takes over the cluster ID of a profile whose access is the current
// one.
func (s *session) adoptClusterID(profile *inventory.Profile) error {
	if id := inventory.ClusterID(profile); !s.cluster.adoptClusterID(id) {
		return &identityError{old: s.cluster.identity, new: identity.Identity{ClusterID: id}}
	}
	return nil
}

// probed handles the result of a probe.
func (s *session) probed(result *probeResult) error {
	s.health.underway = false
	defer s.health.schedule()
	switch {
	case result.switches != s.cluster.switches:
		return nil // the result is of a connection that was replaced
	case result.err == nil:
		return s.identified(result.uid)
	case identity.IsBusy(result.err):
		s.recovered()
		return nil
	case identity.IsUnauthorized(result.err) && s.canReconnect():
		s.unauthorized = result.err
		s.startReconnect()
		return nil
	}
	return s.probeFailed(result.err)
}

// identified handles a successful probe.
func (s *session) identified(uid string) error {
	known := s.cluster.identity
	if uid != "" && known.UID != "" && uid != known.UID {
		return &identityError{old: known, new: identity.Identity{UID: uid}}
	}
	if uid != "" && !s.cluster.verified { // it can be read only now
		s.cluster.learn(uid)
		s.worker.setConnection(s.cluster.connection, uid)
		if err := s.worker.claim(s.cluster.Profile(), s.cluster.identity); err != nil {
			return err
		}
	}
	s.recovered()
	return nil
}

// canReconnect reports whether the profile may be resolved again because the
// cluster rejects the credentials: that is not under way or scheduled, and the
// result can be compared.
func (s *session) canReconnect() bool {
	return s.reconnect == nil && s.retry == nil && s.cluster.connection.Fingerprint() != ""
}

// probeFailed counts a failed probe. The error is that the cluster must be
// disengaged.
func (s *session) probeFailed(err error) error {
	s.health.fail(err)
	switch threshold := s.worker.ProbeFailureThreshold; {
	case s.health.failures < threshold:
		s.worker.log.V(1).Info("Health probe failed", "error", err.Error(), "failures", s.health.failures)
	case s.health.failures == threshold:
		s.stopCatchUp()
		s.cluster.connection.Informers().Hold()
		s.updateStatus()
		s.cluster.engagement.SetHealthy(false)
		s.failOver()
	default:
		s.updateStatus()
		if s.reconnect == nil && s.retry == nil {
			s.failOver() // to a profile that was added since
		}
	}
	return s.health.expired()
}

// recovered notes that the cluster has responded.
func (s *session) recovered() {
	wasDegraded, hadFailed := s.health.degraded(), s.health.failures > 0
	s.health.reset()
	s.endFailover()
	switch {
	case !wasDegraded:
		if informers := s.cluster.connection.Informers(); hadFailed {
			informers.Resume()
		} else {
			informers.Responded()
		}
		s.updateStatus()
	case s.startCatchUp():
		s.caughtUp()
	default:
		s.updateStatus()
	}
}

// updateStatus shows the cluster's health and the result of the last reconnect.
func (s *session) updateStatus() {
	s.worker.setAccessError(s.accessErr)
	logReady := func(log logr.Logger) {
		if behind := informer.Describe(s.cluster.connection.Informers().Behind()); behind != "" {
			log = log.WithValues("behind", behind)
		}
		log.Info("Cluster is ready again")
	}
	switch {
	case s.health.degraded():
		err := s.health.err
		s.worker.setStatus(Degraded, probeReason(err), err.Error(), func(log logr.Logger) {
			log.Info("Cluster is degraded, its requests wait in the queues", "error", err.Error())
		})
	case s.catchUp != nil:
		s.worker.setStatus(Degraded, SyncingCaches, "", func(logr.Logger) {})
	case s.accessErr != nil:
		s.worker.setStatus(Ready, AccessUpdateFailed, s.accessErr.Error(), logReady)
	default:
		s.worker.setStatus(Ready, Engaged, "", logReady)
	}
}

// takeUnauthorized counts the probe that caused a reconnect which found no other
// credentials.
func (s *session) takeUnauthorized() error {
	err := s.unauthorized
	if err == nil {
		return nil
	}
	s.unauthorized = nil
	return s.probeFailed(err)
}

// reconnected handles the result of a reconnect.
func (s *session) reconnected(result *reconnectResult) error {
	w, profile := s.worker, s.reconnect.attempt.profile
	w.endAttempt(s.reconnect.attempt)
	s.reconnect = nil
	switch {
	case errors.Is(result.err, errAccessChanged):
		now := make(chan time.Time, 1)
		now <- time.Time{}
		s.retry = now
		return nil
	case result.err != nil:
		return s.reconnectFailed(result.err)
	case result.connection == nil: // no change
		if err := s.adoptClusterID(profile); err != nil {
			return err
		}
		s.accessErr = nil
		s.updateStatus()
		return s.takeUnauthorized()
	case s.cluster.confirm(result.connection, result.identity):
		result.connection.Release()
		w.log.Info("Profile recreated, same cluster")
	case s.cluster.switchTo(result.connection, result.identity):
		w.log.Info("Switched cluster connection", "server", s.cluster.connection.Server(), "accessProvider", s.cluster.connection.Provider())
	case result.identity.Matches(s.cluster.identity):
		result.connection.Release()
		return errCannotSwitch
	default:
		result.connection.Release()
		err := &identityError{old: s.cluster.identity, new: result.identity}
		if source, _ := s.sourceInUse(); inventory.KeyOf(profile) == s.profileKey || source != nil && profile == w.Own() {
			return err // the name is that of the cluster to which its own profile leads
		}
		return s.reconnectFailed(fmt.Errorf("profile %s cannot be used: %w", inventory.KeyOf(profile), err))
	}
	w.setConnection(s.cluster.connection, s.cluster.identity.UID)
	s.accessErr, s.unauthorized, s.profileUID, s.profileKey = nil, nil, profile.UID, inventory.KeyOf(profile)
	s.cluster.setProfile(profile)
	s.tryOwnLater()
	s.recovered() // it has just responded
	return w.claim(profile, s.cluster.identity)
}

// reconnectFailed keeps the current connection and tries another profile of the
// cluster or, later, the same one again. The error is that the cluster must be
// disengaged.
func (s *session) reconnectFailed(err error) error {
	w := s.worker
	_, inUse := s.sourceInUse()
	mustReplace := isDenied(err) || !inUse
	if (mustReplace || s.health.degraded()) && s.failOver() {
		s.updateStatus()
		return s.takeUnauthorized()
	}
	if mustReplace {
		return withReason(ResolveFailed, err)
	}
	if s.backToSourceInUse() {
		return s.takeUnauthorized()
	}
	delay := w.delay(s.backoff.Step(), err)
	s.accessErr = err
	s.updateStatus()
	w.log.Info("Cannot use the cluster's new access, keeping the current connection", "error", err.Error(), "retryAfter", rounded(delay))
	s.retry = w.Clock.After(delay)
	return s.takeUnauthorized()
}
