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

// health probes an engaged cluster, unless that has sent data by itself. The
// worker's goroutine owns it; probes run in another one.
type health struct {
	worker  *Worker
	cluster *Cluster
	timer   clock.Timer
	results chan probeResult

	ctx     context.Context // ends with the session
	cancel  context.CancelFunc
	probing sync.WaitGroup

	last     time.Time // when a probe was last due, also if it was omitted; at first when the session began
	failures int       // consecutive
	since    time.Time // of the first of them
	err      error     // of the last of them
}

type probeResult struct {
	switches int // the cluster's when it was probed
	uid      string
	err      error
}

func newHealth(w *Worker, cl *Cluster) *health {
	h := &health{worker: w, cluster: cl, results: make(chan probeResult, 1), last: w.Clock.Now()}
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

func (h *health) interval() time.Duration { return wait.Jitter(h.worker.ProbeInterval, probeJitter) }

// schedule sets the time of the next probe.
func (h *health) schedule() { h.timer.Reset(h.interval()) }

// due returns a channel that receives when the cluster is to be probed, nil if it
// is never probed.
func (h *health) due() <-chan time.Time {
	if h.worker.ProbeInterval < 0 || !h.cluster.connection.CanProbe() {
		return nil
	}
	return h.timer.C()
}

// probe starts a probe. Its result is sent to results.
func (h *health) probe() {
	alive := h.cluster.connection.AliveSince(h.last)
	h.last = h.worker.Clock.Now()
	if alive && h.failures == 0 {
		h.schedule()
		return
	}
	switches := h.cluster.switches
	h.probing.Go(func() {
		uid, err := h.worker.probe(h.ctx, h.cluster.connection)
		h.results <- probeResult{switches: switches, uid: uid, err: err}
	})
}

// fail counts a failure.
func (h *health) fail(err error) {
	if h.failures == 0 {
		h.since = h.worker.Clock.Now()
	}
	h.failures++
	h.err = err
}

// reset forgets all failures.
func (h *health) reset() { h.failures, h.err = 0, nil }

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
