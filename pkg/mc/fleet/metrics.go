// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"maps"
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/rollcall-dev/rollcall/pkg/mc/fleet/internal/worker"
)

var (
	clustersDesc = prometheus.NewDesc("rollcall_fleet_clusters",
		"Number of profiles by state of their cluster; those whose cluster name is taken are Pending.", []string{"state"}, nil)

	accessUpdateFailedDesc = prometheus.NewDesc("rollcall_fleet_access_update_failed",
		"Number of Ready or Degraded clusters whose new access cannot be used.", nil, nil)

	syncedDesc = prometheus.NewDesc("rollcall_fleet_inventory_synced",
		"1 if the inventory has been listed, 0 if not.", nil, nil)

	transitions = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "rollcall_fleet_transitions_total",
		Help: "Number of state transitions of clusters by new state and reason. A new reason in the same state is not counted.",
	}, []string{"state", "reason"})

	// running collects from all fleets that are running.
	running = &collector{}
)

func init() {
	ctrlmetrics.Registry.MustRegister(running, transitions)
}

func countTransition(state State, reason Reason) {
	transitions.WithLabelValues(string(state), string(reason)).Inc()
}

type collector struct {
	mu     sync.Mutex // guards fleets
	fleets map[*Fleet]struct{}
}

// add includes a fleet until the function that it returns is called.
func (c *collector) add(f *Fleet) (remove func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fleets == nil {
		c.fleets = map[*Fleet]struct{}{}
	}
	c.fleets[f] = struct{}{}
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.fleets, f)
	}
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(ch chan<- *prometheus.Desc) {
	ch <- clustersDesc
	ch <- accessUpdateFailedDesc
	ch <- syncedDesc
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	c.mu.Lock()
	fleets := slices.Collect(maps.Keys(c.fleets))
	c.mu.Unlock()
	if len(fleets) == 0 {
		return
	}
	counts := map[State]int{}
	accessUpdateFailed, synced := 0, 1.0
	for _, f := range fleets {
		if !f.synced.Load() {
			synced = 0
		}
		f.eachWorker(func(w *worker.Worker) {
			status := w.Status()
			counts[status.State]++
			if status.AccessError != "" {
				accessUpdateFailed++
			}
		})
		f.mu.Lock()
		counts[Pending] += len(f.duplicates)
		f.mu.Unlock()
	}
	ch <- prometheus.MustNewConstMetric(syncedDesc, prometheus.GaugeValue, synced)
	ch <- prometheus.MustNewConstMetric(accessUpdateFailedDesc, prometheus.GaugeValue, float64(accessUpdateFailed))
	for _, state := range states {
		ch <- prometheus.MustNewConstMetric(clustersDesc, prometheus.GaugeValue, float64(counts[state]), string(state))
	}
}
