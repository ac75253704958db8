// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"time"

	"k8s.io/utils/clock"
)

const (
	metricsPeriod = 500 * time.Millisecond
	logPeriod     = 10 * time.Second
)

// phase is how far a queue is on its way to its end.
type phase int

const (
	open     phase = iota
	draining       // takes no adds, and hands out what it has
	closed         // hands out nothing
)

// ShutDown ends the queue. Whoever waits in Get returns, what is queued is
// abandoned, and later adds are ignored. The queue's goroutine has ended when
// ShutDown returns. It may be called more than once, and cuts a
// ShutDownWithDrain short.
func (q *Queue[request]) ShutDown() {
	q.stopLoop()
	q.mu.Lock()
	defer q.mu.Unlock()

	q.phase = closed
	q.changed.Broadcast()
}

// ShutDownWithDrain ends the queue once workers have taken all that they may
// take, and are Done with it. It waits for that. Adds are ignored from the
// start. Delayed requests and those of held clusters are abandoned, as they
// would keep it waiting. (controller-runtime's queue does not drain.)
func (q *Queue[request]) ShutDownWithDrain() {
	q.stopLoop()
	q.mu.Lock()
	defer q.mu.Unlock()

	q.phase = max(q.phase, draining)
	q.wakeLocked()
	for q.phase != closed {
		q.changed.Wait()
	}
}

// ShuttingDown tells whether ShutDown or ShutDownWithDrain has been called.
func (q *Queue[request]) ShuttingDown() bool {
	q.mu.Lock()
	defer q.mu.Unlock()

	return q.phase != open
}

// wakeLocked wakes those who wait for what has changed. One worker is enough
// while the queue is open: it wakes the next if there is more to take.
func (q *Queue[request]) wakeLocked() {
	if q.phase == open {
		if len(q.turns) > 0 {
			q.changed.Signal()
		}
		return
	}
	if len(q.turns) == 0 && q.processing == 0 {
		q.phase = closed
	}
	q.changed.Broadcast()
}

func (q *Queue[request]) stopLoop() {
	q.stopOnce.Do(func() { close(q.stop) })
	q.loop.Wait()
}

// run promotes delayed entries when they are due, and keeps metrics and the
// log up to date.
func (q *Queue[request]) run() {
	timer := q.clock.NewTimer(time.Hour)
	defer timer.Stop()
	timer.Stop()

	var metricsTick, logTick <-chan time.Time
	if q.metrics != nil {
		ticker := q.clock.NewTicker(metricsPeriod)
		defer ticker.Stop()
		metricsTick = ticker.C()
	}
	if q.log.GetSink() != nil {
		ticker := q.clock.NewTicker(logPeriod)
		defer ticker.Stop()
		logTick = ticker.C()
	}

	for {
		select {
		case <-q.stop:
			return
		case <-metricsTick:
			q.updateMetrics()
		case <-logTick:
			q.logState()
		case <-q.rescheduled:
			q.promote(timer)
		case <-timer.C():
			q.promote(timer)
		}
	}
}

// promote makes delayed entries wait for a worker whose time has come, and
// sets the timer to the next.
func (q *Queue[request]) promote(timer clock.Timer) {
	q.mu.Lock()
	defer q.mu.Unlock()

	timer.Stop()
	now := q.clock.Now()
	for len(q.delayed) > 0 {
		e := q.delayed[0]
		if wait := e.readyAt.Sub(now); wait > 0 {
			timer.Reset(wait)
			return
		}
		e.seq = q.nextSeqLocked()
		q.readyLocked(e)
		q.settleLocked(e.cluster)
	}
}

func (q *Queue[request]) updateMetrics() {
	q.mu.Lock()
	defer q.mu.Unlock()

	q.metrics.updateUnfinished()
}

func (q *Queue[request]) logState() {
	log := q.log.V(5)
	if !log.Enabled() {
		return
	}
	q.mu.Lock()
	clusters, waiting, delayed, processing := len(q.clusters), q.waiting, len(q.delayed), q.processing
	q.mu.Unlock()

	log.Info("Queue state", "clusters", clusters, "waiting", waiting, "delayed", delayed, "processing", processing)
}
