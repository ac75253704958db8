// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"
)

// health asks an engaged cluster now and then who it is, unless it has shown
// life by itself over connections that have not been dropped. It belongs to the
// keeper's goroutine; only the question is asked from another.
type health struct {
	*service
	timer   clock.Timer
	answers chan answer

	asking   sync.WaitGroup
	cancel   context.CancelFunc
	ctx      context.Context
	asked    time.Time // of the last question, or when the cluster was engaged
	failures int       // in a row
	since    time.Time // of the first of them
	err      error     // of the last of them
}

type answer struct {
	way      *approach // that was asked
	identity identity
	err      error
}

// probeJitter is the share of the interval by which a probe may come later.
const probeJitter = 0.2

func newHealth(s *service) *health {
	h := &health{service: s, answers: make(chan answer, 1), asked: s.fleet.options.Connection.Clock.Now()}
	h.ctx, h.cancel = context.WithCancel(s.ctx)
	h.timer = s.fleet.options.Connection.Clock.NewTimer(h.interval())
	return h
}

// stop ends a question under way.
func (h *health) stop() {
	h.timer.Stop()
	h.cancel()
	h.asking.Wait()
}

func (h *health) interval() time.Duration {
	return wait.Jitter(h.fleet.options.Connection.Probe.Interval, probeJitter)
}

// due returns the channel that says when to ask; it never does if there are to
// be no probes, or nobody can be asked.
func (h *health) due() <-chan time.Time {
	if h.fleet.options.Connection.Probe.Interval < 0 || h.member.way.identify == nil {
		return nil
	}
	return h.timer.C()
}

// ask asks the cluster who it is. The answer comes to answers.
func (h *health) ask() {
	alive := h.member.transport.lastSign().After(h.asked)
	sameAsBefore := !h.member.transport.dropped.Swap(false)
	h.asked = h.fleet.options.Connection.Clock.Now()
	if alive && sameAsBefore && h.failures == 0 {
		h.timer.Reset(h.interval())
		return
	}
	way, profile := h.member.way, h.member.profile.Load()
	h.asking.Go(func() {
		ctx, cancel := within(h.ctx, h.fleet.options.Connection.Clock, h.fleet.options.Connection.Probe.Timeout, "answer")
		defer cancel()
		id, err := way.identify(ctx, profile)
		if err != nil {
			err = explain(ctx, err)
		}
		h.answers <- answer{way: way, identity: id, err: err}
	})
}

// take draws the conclusions from an answer. The error is errOtherCluster, or
// tells that the cluster is to be dropped.
func (h *health) take(a answer) error {
	h.timer.Reset(h.interval())
	if a.way != h.member.way {
		return nil // the answer is of one that is not used any more
	}
	if a.err == nil || isBusy(a.err) {
		if uid := h.member.way.identity.uid; uid != "" && a.identity.uid != "" && uid != a.identity.uid {
			return errOtherCluster
		}
		h.recovered()
		return nil
	}
	if isUnauthorized(a.err) && h.mayFollow() {
		h.refused = a.err
		h.follow()
		return nil
	}
	return h.failed(a.err)
}

// mayFollow tells whether the profile may be resolved again because the access
// is refused: nobody does so already, or waits to do so after a failure, and
// the outcome can be compared.
func (h *health) mayFollow() bool {
	return h.pursuit == nil && h.retry == nil && h.member.way.fingerprint != ""
}

// failed counts a failure. The error tells that the cluster is to be dropped.
func (h *health) failed(err error) error {
	if h.failures == 0 {
		h.since = h.fleet.options.Connection.Clock.Now()
	}
	h.failures++
	h.err = err
	threshold := h.fleet.options.Connection.Probe.FailureThreshold
	if h.failures < threshold {
		h.log.V(1).Info("Cluster has failed a probe", "error", err.Error(), "failures", h.failures)
	} else {
		h.show()
	}
	if h.failures == threshold {
		h.member.engagement.SetHealthy(false)
	}
	if down := h.fleet.options.Connection.Clock.Since(h.since); down >= h.fleet.options.Connection.Probe.DropAfter {
		return because(Dropped, fmt.Errorf("no probe has succeeded for %v: %w", down.Round(time.Second), err))
	}
	return nil
}

func (h *health) degraded() bool {
	return h.failures >= h.fleet.options.Connection.Probe.FailureThreshold
}

// recovered notes that the cluster has answered.
func (h *health) recovered() {
	wasDegraded := h.degraded()
	h.failures, h.err = 0, nil
	h.show()
	if wasDegraded {
		h.member.engagement.SetHealthy(true)
	}
}
