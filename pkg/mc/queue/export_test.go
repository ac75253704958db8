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

// Accounts returns how many accounts of worker time the queue keeps: one for
// each cluster and priority, and one for each priority.
func (q *Queue[request]) Accounts() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := len(q.bands)
	for _, c := range q.clusters {
		n += len(c.lanes)
	}
	return n
}

// NewPrometheusMetrics finds or adds the workqueue metrics in a registry.
func NewPrometheusMetrics(registry prometheus.Registerer) (MetricsProviderWithPriority, error) {
	return newPrometheusMetrics(registry)
}
