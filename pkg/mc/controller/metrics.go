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
	"github.com/rollcall-dev/rollcall/pkg/mc/queue"
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

// counts is what a controller tells about itself.
type counts struct {
	controller string
	clusters   int
	parked     int
	unsynced   map[multicluster.ClusterName]int
	depth      map[multicluster.ClusterName]int
}

type counter interface {
	counts() counts
}

type collector struct {
	mu       sync.Mutex // guards counters
	counters map[counter]struct{}
}

// add includes a controller until the function that it returns is called.
func (m *collector) add(c counter) (remove func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.counters == nil {
		m.counters = map[counter]struct{}{}
	}
	m.counters[c] = struct{}{}
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.counters, c)
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
	counters := slices.Collect(maps.Keys(m.counters))
	m.mu.Unlock()
	seen := map[string]bool{} // names are unique unless a program forgoes that
	for _, counter := range counters {
		c := counter.counts()
		if seen[c.controller] {
			continue
		}
		seen[c.controller] = true
		ch <- prometheus.MustNewConstMetric(clustersDesc, prometheus.GaugeValue, float64(c.clusters), c.controller)
		ch <- prometheus.MustNewConstMetric(parkedDesc, prometheus.GaugeValue, float64(c.parked), c.controller)
		collectClusters(ch, unsyncedDesc, c.controller, c.unsynced)
		collectClusters(ch, depthDesc, c.controller, c.depth)
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

func (c *mcController[request]) counts() counts {
	all := counts{
		controller: c.name,
		unsynced:   map[multicluster.ClusterName]int{},
		depth:      map[multicluster.ClusterName]int{},
	}
	c.mu.RLock()
	defer c.mu.RUnlock()
	all.clusters, all.parked = len(c.engagements), c.parked.count
	depths, _ := c.clusters.(interface {
		Depth(multicluster.ClusterName) queue.Depth
	})
	for name, e := range c.engagements {
		if e.unsynced > 0 {
			all.unsynced[name] = e.unsynced
		}
		if depths == nil {
			continue
		}
		if d := depths.Depth(name); d.Waiting+d.Delayed > 0 {
			all.depth[name] = d.Waiting + d.Delayed
		}
	}
	return all
}
