// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"
)

// probeJitter is the share of the interval by which a probe may come later.
const probeJitter = 0.2

// spread is the least failure threshold with which a cluster that responds is probed
// every other interval. The probes after a failure make up for it.
const spread = 3

// health probes an engaged cluster, unless that has sent data by itself. The
// worker's goroutine owns it; probes run in another one.
type health struct {
	worker  *Worker
	cluster *Cluster
	timer   clock.Timer
	results chan *probeResult // of one probe at a time

	ctx      context.Context // ends with the session
	cancel   context.CancelFunc
	probing  sync.WaitGroup
	underway bool // a probe

	last time.Time // when a probe was last due, also if it was omitted; at first when the session began
	// responded is when a probe was last due that succeeded.
	responded time.Time
	failures  int       // consecutive
	since     time.Time // of the first of them
	err       error     // of the last of them
}

type probeResult struct {
	switches int // the cluster's when it was probed
	uid      string
	err      error
}

func newHealth(w *Worker, cl *Cluster) *health {
	h := &health{worker: w, cluster: cl, results: make(chan *probeResult, 1), last: w.Clock.Now()}
	h.responded = h.last
	h.ctx, h.cancel = context.WithCancel(w.ctx)
	h.timer = w.Clock.NewTimer(h.interval())
	return h
}

// stop ends a probe that is under way.
func (h *health) stop() {
	h.timer.Stop()
	h.cancel()
	h.probing.Wait()
}

// interval returns the time until the cluster may be probed again. It is shorter
// between the failures before the cluster is degraded, by as much as the first of them
// may be late.
func (h *health) interval() time.Duration {
	interval, threshold := h.worker.ProbeInterval, h.worker.ProbeFailureThreshold
	if threshold >= spread && h.failures > 0 && !h.degraded() {
		interval = interval * time.Duration(threshold-2) / time.Duration(threshold-1)
	}
	return wait.Jitter(interval, probeJitter)
}

// schedule sets the time of the next probe, unless one is under way.
func (h *health) schedule() {
	if !h.underway {
		h.timer.Reset(h.interval())
	}
}

// due returns a channel that receives when the cluster is to be probed, nil if it
// is never probed.
func (h *health) due() <-chan time.Time {
	if h.worker.ProbeInterval < 0 || !h.cluster.connection.CanProbe() {
		return nil
	}
	return h.timer.C()
}

// probe starts a probe, unless the cluster need not be probed. Its result is sent to
// results.
func (h *health) probe() {
	suspect := h.cluster.connection.Suspect()
	since := h.last
	h.last = h.worker.Clock.Now()
	if h.worker.ProbeFailureThreshold >= spread {
		since = h.last.Add(-h.worker.ProbeInterval * 3 / 2)
	}
	alive := h.responded.After(since) || h.cluster.connection.AliveSince(since)
	if alive && !suspect && h.failures == 0 {
		h.schedule()
		return
	}
	switches := h.cluster.switches
	h.underway = true
	h.probing.Go(func() {
		uid, err := h.worker.probe(h.ctx, h.cluster.connection)
		h.results <- &probeResult{switches: switches, uid: uid, err: err}
	})
}

// fail counts a failure.
func (h *health) fail(err error) {
	if h.failures == 0 {
		h.since = h.worker.Clock.Now()
	}
	h.failures++
	h.err = err
	h.schedule()
}

// reset notes a success.
func (h *health) reset() { h.responded, h.failures, h.err = h.last, 0, nil }

// degraded reports whether probes have failed as often as the threshold allows.
func (h *health) degraded() bool { return h.failures >= h.worker.ProbeFailureThreshold }

// expired returns an error if probes have failed for too long.
func (h *health) expired() error {
	down := h.worker.Clock.Since(h.since)
	if down < h.worker.DropAfter {
		return nil
	}
	return withReason(HealthProbeFailed, fmt.Errorf("health probes have failed for %v: %w", down.Round(time.Second), h.err))
}
