// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"errors"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/rollcall-dev/rollcall/pkg/inventory"
)

var (
	errOtherCluster = errors.New("another cluster is there now, or one not known to be the same")
	errClusterEnded = errors.New("the cluster's caches have ended")
)

// service is the time in which a cluster is engaged. It belongs to the
// keeper's goroutine, which waits for nothing but what serve selects.
type service struct {
	*keeper
	member *member
	health *health

	// tried is the heading of the profile that was followed last. Where
	// that could not be done, accessErr says why, the cluster stays as it is,
	// and retry fires when it is to be followed once more.
	tried     string
	accessErr error
	retry     <-chan time.Time
	backoff   wait.Backoff
	// refused is a probe's answer that counts as a failure unless another access
	// is found. It is nil if none waits for that.
	refused error
	// confirmed is the UID of the profile that led to the cluster that is there.
	confirmed types.UID
	// pursuit is under way to find the latest profile's cluster, nil if none is.
	pursuit *pursuit
}

// serve keeps an engaged cluster on its profile's latest version and looks
// after its health. It returns when the keeper's context has ended, or with the
// reason why the cluster is to be disengaged. The cluster has its place in the
// gate until it has been listed for the first time.
func serve(k *keeper, m *member) error {
	first := m.profile.Load()
	s := &service{keeper: k, member: m, backoff: k.newBackoff(), tried: heading(first), confirmed: first.UID}
	defer s.settle()()
	s.health = newHealth(s)
	defer s.health.stop()
	defer s.abandon()
	for {
		var err error
		select {
		case <-k.ctx.Done():
			return nil
		case <-m.stopped:
			return m.err
		case <-k.changed:
			var news bool
			if news, err = s.isNews(); news {
				s.backoff = k.newBackoff()
				s.follow()
			}
		case <-s.retry:
			s.follow()
		case found := <-s.pursuit.result():
			err = s.take(found)
		case <-s.health.due():
			s.health.ask()
		case answer := <-s.health.answers:
			err = s.health.take(answer)
		}
		if err != nil {
			return err
		}
	}
}

// settle ends the keeper's share in the place when the informers have listed
// that were made while the cluster was engaged, or have not within the time that
// an attempt has. Sources that start have shares of their own. The function that
// it returns ends that.
func (s *service) settle() (stop func()) {
	s.member.mu.Lock()
	first := s.member.turn
	s.member.boundTurnLocked(first)
	s.member.mu.Unlock()
	if s.member.listings.count() == s.member.listed {
		s.member.leaveTurn(first)
		return func() {}
	}
	ctx, cancel := within(s.ctx, s.fleet.options.Connection.Clock, s.fleet.options.Connection.ConnectTimeout, "first listing")
	var settling sync.WaitGroup
	settling.Go(func() {
		defer s.member.leaveTurn(first)
		s.member.listings.wait(ctx, s.member.listed)
	})
	return func() {
		cancel()
		settling.Wait()
	}
}

// heading tells versions of a profile apart that may lead to different clusters.
func heading(profile *inventory.Profile) string {
	return string(profile.UID) + " " + inventory.Fingerprint(profile)
}

// isNews takes over the latest profile and tells whether it may lead to the
// cluster in another way than the one followed last. The error is errOtherCluster
// where it leads the same way, but to another cluster.
func (s *service) isNews() (bool, error) {
	profile := s.latest.Load()
	if s.recheck.Swap(false) || heading(profile) != s.tried {
		s.member.setProfile(profile)
		return true, nil
	}
	if s.pursuit == nil && s.accessErr == nil && !s.member.adopt(inventory.ClusterID(profile)) {
		return false, errOtherCluster
	}
	s.member.setProfile(profile)
	return false, nil
}

// show makes the status say how the cluster is.
func (s *service) show() {
	again := func(log logr.Logger) { log.Info("Cluster is ready again") }
	switch {
	case s.health.degraded():
		s.setStatus(Degraded, whyNoAnswer(s.health.err), s.health.err.Error(), func(log logr.Logger) {
			log.Info("Cluster is degraded: its requests wait", "error", s.health.err.Error())
		})
	case s.accessErr != nil:
		s.setStatus(Ready, NewAccessFailed, s.accessErr.Error(), again)
	default:
		s.setStatus(Ready, Engaged, "", again)
	}
}
