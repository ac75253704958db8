// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
)

// maxClusterSeries bounds the series of one metric and controller that carry a
// cluster's name. The clusters with the highest values have one of their own;
// the others are added up under otherClusters.
const (
	maxClusterSeries = 100
	otherClusters    = "(other)"
)

var (
	clustersDesc = prometheus.NewDesc("rollcall_controller_clusters",
		"Number of clusters that the controller is engaged with.", []string{"controller"}, nil)
	parkedDesc = prometheus.NewDesc("rollcall_controller_parked_requests",
		"Number of requests that wait for a cluster to be engaged.", []string{"controller"}, nil)
	unsyncedDesc = prometheus.NewDesc("rollcall_controller_cluster_unsynced_sources",
		"Number of sources that have not synced in a cluster, where there are any.", []string{"controller", "cluster"}, nil)
	depthDesc = prometheus.NewDesc("rollcall_controller_cluster_depth",
		"Number of requests that are queued for a cluster, where there are any.", []string{"controller", "cluster"}, nil)
)

// metrics collects from all controllers that run. Values are read when they
// are scraped, so a cluster that has left leaves no series behind.
var metrics = &collector{}

func init() {
	ctrlmetrics.Registry.MustRegister(metrics)
}

// reporter is a controller that metrics are collected from.
type reporter interface {
	StatusReporter
	controllerName() string
	parkedRequests() int
}

type collector struct {
	mu        sync.Mutex // guards reporters
	reporters map[reporter]struct{}
}

// add includes a controller until the function that it returns is called.
func (m *collector) add(c reporter) (remove func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.reporters == nil {
		m.reporters = map[reporter]struct{}{}
	}
	m.reporters[c] = struct{}{}
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.reporters, c)
	}
}

// Describe implements prometheus.Collector.
func (m *collector) Describe(ch chan<- *prometheus.Desc) {
	ch <- clustersDesc
	ch <- parkedDesc
	ch <- unsyncedDesc
	ch <- depthDesc
}

// Collect implements prometheus.Collector.
func (m *collector) Collect(ch chan<- prometheus.Metric) {
	m.mu.Lock()
	reporters := slices.Collect(maps.Keys(m.reporters))
	m.mu.Unlock()
	seen := map[string]bool{} // names are unique unless a program forgoes that
	for _, r := range reporters {
		name := r.controllerName()
		if seen[name] {
			continue
		}
		seen[name] = true
		clusters := r.ClusterStatus()
		unsynced, depth := map[multicluster.ClusterName]int{}, map[multicluster.ClusterName]int{}
		for _, c := range clusters {
			if c.UnsyncedSources > 0 {
				unsynced[c.ClusterName] = c.UnsyncedSources
			}
			if queued := c.backlog(); queued > 0 {
				depth[c.ClusterName] = queued
			}
		}
		ch <- prometheus.MustNewConstMetric(clustersDesc, prometheus.GaugeValue, float64(len(clusters)), name)
		ch <- prometheus.MustNewConstMetric(parkedDesc, prometheus.GaugeValue, float64(r.parkedRequests()), name)
		collectClusters(ch, unsyncedDesc, name, unsynced)
		collectClusters(ch, depthDesc, name, depth)
	}
}

func collectClusters(ch chan<- prometheus.Metric, desc *prometheus.Desc, controller string, values map[multicluster.ClusterName]int) {
	names := slices.SortedFunc(maps.Keys(values), func(a, b multicluster.ClusterName) int {
		return cmp.Or(cmp.Compare(values[b], values[a]), cmp.Compare(a, b))
	})
	others := 0
	for i, name := range names {
		if i >= maxClusterSeries {
			others += values[name]
			continue
		}
		ch <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, float64(values[name]), controller, name.String())
	}
	if others > 0 {
		ch <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, float64(others), controller, otherClusters)
	}
}

func (c *mcController[request]) controllerName() string { return c.name }

func (c *mcController[request]) parkedRequests() int {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return len(c.parked.until)
}
