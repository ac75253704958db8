// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/rollcall-dev/rollcall/pkg/credentials/internal/authn"
	"github.com/rollcall-dev/rollcall/pkg/credentials/providerfile"
)

// metrics are those of all resolvers, in controller-runtime's registry. Their
// labels have few values: the names of providers, which the operator chooses,
// and the outcomes.
var metrics = newCollector()

func init() { ctrlmetrics.Registry.MustRegister(metrics) }

var (
	inFlightDesc = prometheus.NewDesc("rollcall_credentials_runs_in_flight",
		"Number of runs of a provider's plugin in progress.", []string{"provider"}, nil)
	expiryDesc = prometheus.NewDesc("rollcall_credentials_expiry_seconds",
		"Seconds until the first of a provider's credentials expires. Negative if one has expired because its plugin fails.",
		[]string{"provider"}, nil)
)

// collector has the series of each provider for as long as it has holders: a
// resolver with the provider, or an Authenticator.
type collector struct {
	obtained *prometheus.CounterVec
	duration *prometheus.HistogramVec

	mu        sync.Mutex // guards what follows
	providers map[string]*providerMetrics
}

// providerMetrics are the series of one provider. The collector's lock guards
// the fields.
type providerMetrics struct {
	collector *collector
	name      string

	holders        int
	inFlight       int
	authenticators map[*authn.Authenticator]struct{}
}

func newCollector() *collector {
	return &collector{
		obtained: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "rollcall_credentials_obtained_total",
			Help: "Number of attempts to obtain a credential, by outcome.",
		}, []string{"provider", "outcome"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "rollcall_credentials_run_duration_seconds",
			Help:    "Duration of the runs of a provider's plugin in seconds, not counting the wait for a slot, see MaxConcurrentRuns.",
			Buckets: []float64{0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30},
		}, []string{"provider"}),
		providers: map[string]*providerMetrics{},
	}
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(ch chan<- *prometheus.Desc) {
	c.obtained.Describe(ch)
	c.duration.Describe(ch)
	ch <- inFlightDesc
	ch <- expiryDesc
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	c.obtained.Collect(ch)
	c.duration.Collect(ch)

	users := map[string][]*authn.Authenticator{}
	c.mu.Lock()
	for name, p := range c.providers {
		if len(p.authenticators) > 0 {
			ch <- prometheus.MustNewConstMetric(inFlightDesc, prometheus.GaugeValue, float64(p.inFlight), name)
			users[name] = slices.Collect(maps.Keys(p.authenticators))
		}
	}
	c.mu.Unlock()

	now := time.Now()
	for name, authenticators := range users {
		first, found := time.Duration(0), false
		for _, auth := range authenticators {
			if left, expires := auth.ExpiresIn(now); expires && (!found || left < first) {
				first, found = left, true
			}
		}
		if found {
			ch <- prometheus.MustNewConstMetric(expiryDesc, prometheus.GaugeValue, first.Seconds(), name)
		}
	}
}

// hold returns the series of the provider, which exist until drop.
func (c *collector) hold(name string) *providerMetrics {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.providers[name]
	if p == nil {
		p = &providerMetrics{collector: c, name: name, authenticators: map[*authn.Authenticator]struct{}{}}
		c.providers[name] = p
	}
	p.holders++
	return p
}

// drop removes the series if they have no other holder.
func (p *providerMetrics) drop() {
	p.collector.mu.Lock()
	defer p.collector.mu.Unlock()
	if p.holders--; p.holders > 0 {
		return
	}
	delete(p.collector.providers, p.name)
	p.collector.obtained.DeletePartialMatch(prometheus.Labels{"provider": p.name})
	p.collector.duration.DeleteLabelValues(p.name)
}

// add includes the Authenticator, which holds the series, until remove.
func (p *providerMetrics) add(auth *authn.Authenticator) {
	p.collector.mu.Lock()
	defer p.collector.mu.Unlock()
	p.authenticators[auth] = struct{}{}
}

// remove undoes add and hold.
func (p *providerMetrics) remove(auth *authn.Authenticator) {
	p.collector.mu.Lock()
	delete(p.authenticators, auth)
	p.collector.mu.Unlock()
	p.drop()
}

// started counts a run until the function is called with its error.
func (p *providerMetrics) started() (ended func(error)) {
	start := time.Now()
	p.count(1)
	return func(err error) {
		p.count(-1)
		p.finished(err)
		switch outcome(err) {
		case "missing", "denied", "canceled":
			// The plugin was not run.
		default:
			p.write(func() { p.collector.duration.WithLabelValues(p.name).Observe(time.Since(start).Seconds()) })
		}
	}
}

// finished counts an attempt.
func (p *providerMetrics) finished(err error) {
	p.write(func() { p.collector.obtained.WithLabelValues(p.name, outcome(err)).Inc() })
}

func (p *providerMetrics) count(change int) {
	p.collector.mu.Lock()
	defer p.collector.mu.Unlock()
	p.inFlight += change
}

// write calls the function unless the series have been removed: a run may end
// after its Authenticator.
func (p *providerMetrics) write(f func()) {
	p.collector.mu.Lock()
	defer p.collector.mu.Unlock()
	if p.collector.providers[p.name] == p {
		f()
	}
}

// outcome returns the label for the error of a run.
func outcome(err error) string {
	switch {
	case err == nil:
		return "success"
	case errors.Is(err, ErrPluginMissing):
		return "missing"
	case errors.Is(err, ErrDenied):
		return "denied"
	case errors.Is(err, ErrTimeout):
		return "timeout"
	case errors.Is(err, ErrExpired):
		return "expired"
	case errors.Is(err, ErrInvalidOutput):
		return "invalid_output"
	case errors.Is(err, ErrPluginFailed):
		return "failed"
	}
	return "canceled"
}

// knownProviders hold the series of a resolver's providers.
type knownProviders struct {
	mu     sync.Mutex // guards what follows
	held   map[string]*providerMetrics
	closed bool
}

// set replaces the providers.
func (k *knownProviders) set(lists ...[]providerfile.Provider) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed {
		return
	}
	held := map[string]*providerMetrics{}
	for _, list := range lists {
		for i := range list {
			if name := list[i].Name; held[name] == nil {
				held[name] = metrics.hold(name)
			}
		}
	}
	k.dropAll()
	k.held = held
}

// close drops all series. Later calls of set have no effect.
func (k *knownProviders) close() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.closed = true
	k.dropAll()
}

func (k *knownProviders) dropAll() {
	for _, p := range k.held {
		p.drop()
	}
	k.held = nil
}
