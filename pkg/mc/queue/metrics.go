// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"errors"
	"strconv"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/util/workqueue"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
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

// priorityMetricsProvider is a MetricsProvider with a depth metric by priority,
// which is used instead of NewDepthMetric.
type priorityMetricsProvider interface {
	workqueue.MetricsProvider
	NewDepthMetricWithPriority(name string) depthMetric
}

// depthMetric is the number of waiting requests by priority. A queue does not
// call it concurrently.
type depthMetric interface {
	Inc(priority int)
	Dec(priority int)
}

// registeredMetrics returns the workqueue metrics of controller-runtime's
// registry. With an error, the provider still works, but some of its metrics are
// not in the registry.
var registeredMetrics = sync.OnceValues(func() (workqueue.MetricsProvider, error) {
	return newPrometheusMetrics(ctrlmetrics.Registry)
})

// prometheusMetrics are the workqueue metrics of controller-runtime. Their labels
// name and controller have the same value.
type prometheusMetrics struct {
	depth                      *prometheus.GaugeVec
	adds, retries              *prometheus.CounterVec
	latency, workDuration      *prometheus.HistogramVec
	unfinished, longestRunning *prometheus.GaugeVec
}

var _ priorityMetricsProvider = (*prometheusMetrics)(nil)

// newPrometheusMetrics returns the metrics of a registry and registers those that
// are missing. controller-runtime does not export its collectors, but a registry
// returns them when metrics with the same name, labels and help are registered.
func newPrometheusMetrics(registry prometheus.Registerer) (*prometheusMetrics, error) {
	r := registrar{registry: registry}
	p := &prometheusMetrics{
		depth: register(&r, prometheus.NewGaugeVec(prometheus.GaugeOpts(opts(ctrlmetrics.DepthKey,
			"Current depth of workqueue by workqueue and priority")), []string{"name", "controller", "priority"})),
		adds: register(&r, prometheus.NewCounterVec(prometheus.CounterOpts(opts(ctrlmetrics.AddsKey,
			"Total number of adds handled by workqueue")), queueLabels)),
		retries: register(&r, prometheus.NewCounterVec(prometheus.CounterOpts(opts(ctrlmetrics.RetriesKey,
			"Total number of items added to the workqueue with a non-zero delay "+
				"(rate-limited requeues, explicit RequeueAfter or AddAfter calls)")), queueLabels)),
		latency: register(&r, prometheus.NewHistogramVec(histogramOpts(ctrlmetrics.QueueLatencyKey,
			"How long in seconds an item stays in workqueue before being requested"), queueLabels)),
		workDuration: register(&r, prometheus.NewHistogramVec(histogramOpts(ctrlmetrics.WorkDurationKey,
			"How long in seconds processing an item from workqueue takes."), queueLabels)),
		unfinished: register(&r, prometheus.NewGaugeVec(prometheus.GaugeOpts(opts(ctrlmetrics.UnfinishedWorkKey,
			"How many seconds of work has been done that is in progress and hasn't been observed by work_duration. "+
				"Large values indicate stuck threads. One can deduce the number of stuck threads by observing the "+
				"rate at which this increases.")), queueLabels)),
		longestRunning: register(&r, prometheus.NewGaugeVec(prometheus.GaugeOpts(opts(ctrlmetrics.LongestRunningProcessorKey,
			"How many seconds has the longest running processor for workqueue been running.")), queueLabels)),
	}
	return p, errors.Join(r.errs...)
}

var queueLabels = []string{"name", "controller"}

func opts(key, help string) prometheus.Opts {
	return prometheus.Opts{Subsystem: ctrlmetrics.WorkQueueSubsystem, Name: key, Help: help}
}

func histogramOpts(key, help string) prometheus.HistogramOpts {
	return prometheus.HistogramOpts{
		Subsystem: ctrlmetrics.WorkQueueSubsystem,
		Name:      key,
		Help:      help,
		Buckets:   prometheus.ExponentialBuckets(10e-9, 10, 12),
	}
}

type registrar struct {
	registry prometheus.Registerer
	errs     []error
}

// register registers a collector and returns it, or the equal one that is
// already registered.
func register[collector prometheus.Collector](r *registrar, c collector) collector {
	err := r.registry.Register(c)
	if already, ok := errors.AsType[prometheus.AlreadyRegisteredError](err); ok {
		if existing, ok := already.ExistingCollector.(collector); ok {
			return existing
		}
	}
	if err != nil {
		r.errs = append(r.errs, err)
	}
	return c
}

func (p *prometheusMetrics) NewDepthMetric(name string) workqueue.GaugeMetric {
	return p.depth.WithLabelValues(name, name, "")
}

func (p *prometheusMetrics) NewAddsMetric(name string) workqueue.CounterMetric {
	return p.adds.WithLabelValues(name, name)
}

func (p *prometheusMetrics) NewLatencyMetric(name string) workqueue.HistogramMetric {
	return p.latency.WithLabelValues(name, name)
}

func (p *prometheusMetrics) NewWorkDurationMetric(name string) workqueue.HistogramMetric {
	return p.workDuration.WithLabelValues(name, name)
}

func (p *prometheusMetrics) NewUnfinishedWorkSecondsMetric(name string) workqueue.SettableGaugeMetric {
	return p.unfinished.WithLabelValues(name, name)
}

func (p *prometheusMetrics) NewLongestRunningProcessorSecondsMetric(name string) workqueue.SettableGaugeMetric {
	return p.longestRunning.WithLabelValues(name, name)
}

func (p *prometheusMetrics) NewRetriesMetric(name string) workqueue.CounterMetric {
	return p.retries.WithLabelValues(name, name)
}

func (p *prometheusMetrics) NewDepthMetricWithPriority(name string) depthMetric {
	return &depthByPriority{vec: p.depth, name: name, gauges: map[int]prometheus.Gauge{}}
}

const (
	// maxPriorityLabels limits the series of one queue. Further priorities share
	// a series with the label value otherPriorities, as in controller-runtime.
	maxPriorityLabels = 25
	otherPriorities   = "exceeded_cardinality_limit"
)

// depthByPriority is the depth metric of one queue. A priority keeps its first
// series.
type depthByPriority struct {
	vec    *prometheus.GaugeVec
	name   string
	gauges map[int]prometheus.Gauge
}

func (d *depthByPriority) Inc(priority int) { d.gauge(priority).Inc() }
func (d *depthByPriority) Dec(priority int) { d.gauge(priority).Dec() }

func (d *depthByPriority) gauge(priority int) prometheus.Gauge {
	if g, ok := d.gauges[priority]; ok {
		return g
	}
	if len(d.gauges) >= maxPriorityLabels {
		return d.vec.WithLabelValues(d.name, d.name, otherPriorities)
	}
	g := d.vec.WithLabelValues(d.name, d.name, strconv.Itoa(priority))
	d.gauges[priority] = g
	return g
}
