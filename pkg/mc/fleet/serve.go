// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"errors"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/rollcall-dev/rollcall/pkg/inventory"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
)

var (
	errOtherCluster = errors.New("another cluster is there now, or one not known to be the same")
	errClusterEnded = errors.New("the cluster's caches have ended")
)

// service is the time in which a cluster is engaged. It belongs to the
// keeper's goroutine.
type service struct {
	*keeper
	member *member
	health *health

	// retry fires when the latest profile is to be followed once more. It is
	// nil while that is followed; otherwise the cluster stays as it is.
	retry   <-chan time.Time
	backoff wait.Backoff
}

// serve keeps an engaged cluster on its profile's latest version and looks
// after its health. It returns nil if the cluster is to be connected anew at
// once, or leaves. The cluster has its place in the gate until it has been
// listed for the first time.
func serve(k *keeper, m *member, p *place) error {
	s := &service{keeper: k, member: m, backoff: k.newBackoff()}
	defer s.settle(p)()
	s.health = newHealth(s)
	defer s.health.stop()
	for {
		var err error
		select {
		case <-k.ctx.Done():
			return nil
		case <-m.stopped:
			return errors.Join(errClusterEnded, m.err)
		case <-k.changed:
			if !s.isNews() {
				continue
			}
			s.backoff = k.newBackoff()
			err = s.follow()
		case <-s.retry:
			err = s.follow()
		case <-s.health.due():
			s.health.ask()
		case answer := <-s.health.answers:
			err = s.health.take(answer)
		}
		if errors.Is(err, errOtherCluster) {
			k.log.Info("Cluster is engaged anew", "reason", err.Error())
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// settle gives up the place when the cluster has been listed, or is not
// within the time that an attempt has. The function that it returns ends that.
func (s *service) settle(p *place) (stop func()) {
	ctx, cancel := context.WithTimeout(s.ctx, s.fleet.options.ConnectTimeout)
	var settling sync.WaitGroup
	settling.Go(func() {
		defer p.leave()
		if waiter, ok := s.aware.(multicluster.SyncWaiter); ok {
			waiter.WaitForClusterSync(ctx, s.name, s.member)
		}
	})
	return func() {
		cancel()
		settling.Wait()
	}
}

// isNews takes over the latest profile and tells whether it may lead to the
// cluster in another way.
func (s *service) isNews() bool {
	profile := s.latest.Load()
	previous := s.member.setProfile(profile)
	return s.recheck.Swap(false) || s.retry != nil ||
		inventory.Fingerprint(previous) != inventory.Fingerprint(profile)
}

// follow makes the latest profile the one by which the cluster is reached. If
// that cannot be done, it is tried again later; the only error is
// errOtherCluster.
func (s *service) follow() error {
	s.retry = nil
	a := s.try()
	exchanged, err := s.keeper.follow(a, s.member)
	s.end(a)
	switch {
	case errors.Is(err, errOtherCluster):
		return err
	case errors.Is(err, errSuperseded):
		s.retry = time.After(0)
	case err != nil:
		delay := s.backoff.Step()
		s.fail(s.status.Load().State, err)
		s.log.Info("Cluster's new access cannot be used, keeping the one before", "error", err.Error(), "after", delay.Round(time.Millisecond))
		s.retry = time.After(delay)
	case exchanged:
		s.health.recovered() // it has just answered
	case s.health.degraded():
	default:
		s.enter(Ready)
	}
	return nil
}
