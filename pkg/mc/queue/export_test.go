// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package queue

import "github.com/prometheus/client_golang/prometheus"

// DepthMetric lets tests implement a depth metric by priority.
type DepthMetric = depthMetric

// KnownClusters returns the number of clusters that the queue has state of.
func (q *Queue[request]) KnownClusters() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.clusters)
}

// Accounts returns the number of subqueues and priority levels.
func (q *Queue[request]) Accounts() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := len(q.levels)
	for _, c := range q.clusters {
		n += len(c.subqueues)
	}
	return n
}

// NewPrometheusMetrics exports newPrometheusMetrics.
func NewPrometheusMetrics(registry prometheus.Registerer) (priorityMetricsProvider, error) {
	return newPrometheusMetrics(registry)
}
