// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package queue

import "github.com/prometheus/client_golang/prometheus"

// KnownClusters returns how many clusters the queue keeps state of.
func (q *Queue[request]) KnownClusters() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.clusters)
}

// NewPrometheusMetrics finds or adds the workqueue metrics in a registry.
func NewPrometheusMetrics(registry prometheus.Registerer) (MetricsProviderWithPriority, error) {
	return newPrometheusMetrics(registry)
}
