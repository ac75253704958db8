// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package multi

import (
	"maps"
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
)

var (
	providersDesc = prometheus.NewDesc("rollcall_multi_providers", "Number of combined providers by state.", []string{"state"}, nil)

	// collected are all providers that run.
	collected = &collector{}
)

func init() { ctrlmetrics.Registry.MustRegister(collected) }

type collector struct {
	mu  sync.Mutex // guards all
	all map[*Provider]struct{}
}

// add includes a provider until the function that it returns is called.
func (c *collector) add(p *Provider) (remove func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all == nil {
		c.all = map[*Provider]struct{}{}
	}
	c.all[p] = struct{}{}
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.all, p)
	}
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(ch chan<- *prometheus.Desc) { ch <- providersDesc }

// Collect implements prometheus.Collector.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	c.mu.Lock()
	all := slices.Collect(maps.Keys(c.all))
	c.mu.Unlock()
	if len(all) == 0 {
		return
	}
	counts := map[ProviderState]int{}
	for _, p := range all {
		for _, status := range p.ProviderStatus() {
			counts[status.State]++
		}
	}
	for _, state := range states {
		ch <- prometheus.MustNewConstMetric(providersDesc, prometheus.GaugeValue, float64(counts[state]), string(state))
	}
}
