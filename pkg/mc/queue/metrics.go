// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/util/workqueue"
)

// metrics updates the metrics of one queue, under its lock. A queue without a
// name has a nil *metrics, whose methods do nothing.
type metrics[request comparable] struct {
	depth          depthMetric
	adds, retries  workqueue.CounterMetric
	latency        workqueue.HistogramMetric
	workDuration   workqueue.HistogramMetric
	unfinished     workqueue.SettableGaugeMetric
	longestRunning workqueue.SettableGaugeMetric

	inProcess map[*entry[request]]struct{}
}

func newMetrics[request comparable](name string, provider workqueue.MetricsProvider, log logr.Logger) *metrics[request] {
	if name == "" {
		return nil
	}
	if provider == nil {
		registered, err := registeredMetrics()
		if err != nil {
			log.Error(err, "Failed to register workqueue metrics, some metrics of the queue are missing", "queue", name)
		}
		provider = registered
	}
	m := &metrics[request]{
		adds:           provider.NewAddsMetric(name),
		retries:        provider.NewRetriesMetric(name),
		latency:        provider.NewLatencyMetric(name),
		workDuration:   provider.NewWorkDurationMetric(name),
		unfinished:     provider.NewUnfinishedWorkSecondsMetric(name),
		longestRunning: provider.NewLongestRunningProcessorSecondsMetric(name),
		inProcess:      map[*entry[request]]struct{}{},
	}
	if byPriority, ok := provider.(priorityMetricsProvider); ok {
		m.depth = byPriority.NewDepthMetricWithPriority(name)
	} else {
		m.depth = plainDepth{provider.NewDepthMetric(name)}
	}
	return m
}

// added is called when an entry becomes waiting.
func (m *metrics[request]) added(e *entry[request]) {
	if m == nil {
		return
	}
	e.addedAt = time.Now()
	m.adds.Inc()
	m.depth.Inc(e.priority)
}

// removed is called when a waiting entry is dropped.
func (m *metrics[request]) removed(e *entry[request]) {
	if m == nil {
		return
	}
	m.depth.Dec(e.priority)
}

// got is called when a worker takes an entry.
func (m *metrics[request]) got(e *entry[request]) {
	if m == nil {
		return
	}
	e.startedAt = time.Now()
	m.depth.Dec(e.priority)
	m.latency.Observe(e.startedAt.Sub(e.addedAt).Seconds())
	m.inProcess[e] = struct{}{}
}

// done is called when a worker is done with an entry.
func (m *metrics[request]) done(e *entry[request]) {
	if m == nil {
		return
	}
	m.workDuration.Observe(time.Since(e.startedAt).Seconds())
	delete(m.inProcess, e)
}

// raised is called when a waiting entry gets a higher priority.
func (m *metrics[request]) raised(from, to int) {
	if m == nil {
		return
	}
	m.depth.Dec(from)
	m.depth.Inc(to)
}

// retried is called for each add that has a delay.
func (m *metrics[request]) retried() {
	if m == nil {
		return
	}
	m.retries.Inc()
}

// updateUnfinished is called periodically.
func (m *metrics[request]) updateUnfinished() {
	var total, longest time.Duration
	for e := range m.inProcess {
		age := time.Since(e.startedAt)
		total += age
		longest = max(longest, age)
	}
	m.unfinished.Set(total.Seconds())
	m.longestRunning.Set(longest.Seconds())
}

// plainDepth is the depth metric of a provider that does not know priorities.
type plainDepth struct{ workqueue.GaugeMetric }

func (d plainDepth) Inc(int) { d.GaugeMetric.Inc() }
func (d plainDepth) Dec(int) { d.GaugeMetric.Dec() }
