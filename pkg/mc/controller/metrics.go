// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
)

// maxClusterSeries bounds the series with a cluster's name for one metric and
// controller. The clusters with the highest values have their own; the others
// are added up under otherClusters, with a cluster that has this name.
const (
	maxClusterSeries = 100
	otherClusters    = "(other)"
)

var (
	clustersDesc = prometheus.NewDesc("rollcall_controller_clusters",
		"Number of clusters that the controller is engaged with.", []string{"controller"}, nil)
	parkedDesc = prometheus.NewDesc("rollcall_controller_parked_requests",
		"Number of requests held because a cluster is not engaged or a cache is too old.", []string{"controller"}, nil)
	unsyncedDesc = prometheus.NewDesc("rollcall_controller_cluster_unsynced_sources",
		"Number of sources that have not synced in a cluster, if not zero.", []string{"controller", "cluster"}, nil)
	depthDesc = prometheus.NewDesc("rollcall_controller_cluster_depth",
		"Number of requests queued for a cluster, if not zero.", []string{"controller", "cluster"}, nil)
)

// metrics collects from all controllers whose sources run. It reads the values at
// each scrape, so a cluster that was disengaged has no series.
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

// collector is a prometheus.Collector for all controllers of the process.
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
	sums := map[string]*sum{} // several controllers may have one name if SkipNameValidation is set
	for _, r := range reporters {
		name := r.controllerName()
		if sums[name] == nil {
			sums[name] = &sum{unsynced: map[string]int{}, depth: map[string]int{}}
		}
		sums[name].add(r)
	}
	for name, s := range sums {
		send(ch, clustersDesc, s.clusters, name)
		send(ch, parkedDesc, s.parked, name)
		sendClusters(ch, unsyncedDesc, name, s.unsynced)
		sendClusters(ch, depthDesc, name, s.depth)
	}
}

// sum adds up the values of all controllers of one name.
type sum struct {
	clusters, parked int
	unsynced, depth  map[string]int // by cluster, if not zero
}

func (s *sum) add(r reporter) {
	all := r.ClusterStatus()
	s.clusters += len(all)
	s.parked += r.parkedRequests()
	for _, c := range all {
		name := label(c.ClusterName.String())
		if c.UnsyncedSources > 0 {
			s.unsynced[name] += c.UnsyncedSources
		}
		if queued := c.backlog(); queued > 0 {
			s.depth[name] += queued
		}
	}
}

func sendClusters(ch chan<- prometheus.Metric, desc *prometheus.Desc, controller string, values map[string]int) {
	others := values[otherClusters]
	delete(values, otherClusters)
	names := slices.SortedFunc(maps.Keys(values), func(a, b string) int {
		return cmp.Or(cmp.Compare(values[b], values[a]), cmp.Compare(a, b))
	})
	for i, name := range names {
		if i < maxClusterSeries {
			send(ch, desc, values[name], controller, name)
		} else {
			others += values[name]
		}
	}
	if others > 0 {
		send(ch, desc, others, controller, otherClusters)
	}
}

// send omits a series that is invalid: it would make the whole scrape fail.
func send(ch chan<- prometheus.Metric, desc *prometheus.Desc, value int, labels ...string) {
	if metric, err := prometheus.NewConstMetric(desc, prometheus.GaugeValue, float64(value), labels...); err == nil {
		ch <- metric
	}
}

// label makes a cluster's name a valid label value.
func label(name string) string {
	return strings.ToValidUTF8(name, "\uFFFD")
}

func (c *mcController[request]) controllerName() string { return c.name }

func (c *mcController[request]) parkedRequests() int {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return len(c.parked.until) + len(c.waiting.until)
}
