// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package queue

import "time"

const (
	metricsPeriod = 500 * time.Millisecond
	logPeriod     = 10 * time.Second
)

// phase is the phase of a queue's shutdown.
type phase int

const (
	open     phase = iota
	draining       // adds are ignored, Get returns what is due
	closed         // Get returns nothing
)

// ShutDown ends the queue. Blocked calls of Get return, queued requests are
// discarded, and later adds are ignored. The goroutine of the queue has ended
// when ShutDown returns. ShutDown may be called more than once, and ends a
// ShutDownWithDrain early.
func (q *Queue[request]) ShutDown() {
	q.stopLoop()
	q.mu.Lock()
	defer q.mu.Unlock()

	q.phase = closed
	q.changed.Broadcast()
}

// ShutDownWithDrain ends the queue after workers have taken all requests that
// are due and are Done with them. It blocks until then; adds are ignored from
// the start. Requests that are delayed or of a paused cluster are discarded.
// Unlike this method, that of controller-runtime's queue does not drain.
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

// ShuttingDown reports whether ShutDown or ShutDownWithDrain has been called.
func (q *Queue[request]) ShuttingDown() bool {
	q.mu.Lock()
	defer q.mu.Unlock()

	return q.phase != open
}

// wakeLocked wakes blocked callers after a change. While the queue is open it
// wakes one worker, which wakes the next one if there is more to take.
func (q *Queue[request]) wakeLocked() {
	if q.phase == open {
		if len(q.ready) > 0 {
			q.changed.Signal()
		}
		return
	}
	if len(q.ready) == 0 && q.processing == 0 {
		q.phase = closed
	}
	q.changed.Broadcast()
}

func (q *Queue[request]) stopLoop() {
	q.stopOnce.Do(func() { close(q.stop) })
	q.loop.Wait()
}

// run makes delayed entries waiting when they are due, and updates metrics and
// the log, until the queue is shut down.
func (q *Queue[request]) run() {
	timer := time.NewTimer(0)
	defer timer.Stop()

	var metricsTick, logTick <-chan time.Time
	if q.metrics != nil {
		metricsTick = time.Tick(metricsPeriod)
	}
	if q.log.GetSink() != nil {
		logTick = time.Tick(logPeriod)
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
		case <-timer.C:
			q.promote(timer)
		}
	}
}

// promote makes the delayed entries waiting that are due, and sets the timer for
// the next one.
func (q *Queue[request]) promote(timer *time.Timer) {
	q.mu.Lock()
	defer q.mu.Unlock()

	now := time.Now()
	for len(q.delayed) > 0 {
		e := q.delayed[0]
		if wait := e.readyAt.Sub(now); wait > 0 {
			timer.Reset(wait)
			return
		}
		e.sequence = q.nextSequenceLocked()
		q.readyLocked(e)
		q.updateLocked(e.cluster)
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
