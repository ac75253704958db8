// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package queue_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/rollcall-dev/rollcall/pkg/mc/queue"
)

// TestMetricsCompatibility tests the metrics of this queue and of
// controller-runtime's with a provider that does not know priorities.
func TestMetricsCompatibility(t *testing.T) {
	for _, tc := range []struct {
		name string
		run  func(t *testing.T, q priorityqueue.PriorityQueue[string])
		want map[string]float64
	}{
		{
			name: "a request counts once, however often it is added",
			run: func(t *testing.T, q priorityqueue.PriorityQueue[string]) {
				q.Add("a")
				q.AddWithOpts(opts{Priority: new(1)}, "a")
				wantLen(t, q, 1)
			},
			want: map[string]float64{"depth": 1, "adds": 1},
		},
		{
			name: "a delayed request counts as a retry, and as an add when it is due",
			run: func(t *testing.T, q priorityqueue.PriorityQueue[string]) {
				q.AddAfter("a", time.Second)
				q.AddRateLimited("b")
				time.Sleep(100 * time.Millisecond)
				wantLen(t, q, 1)
			},
			want: map[string]float64{"depth": 1, "adds": 1, "retries": 2},
		},
		{
			name: "a delayed request that becomes due early counts one add",
			run: func(t *testing.T, q priorityqueue.PriorityQueue[string]) {
				q.AddAfter("a", time.Second)
				q.Add("a")
				wantLen(t, q, 1)
				time.Sleep(2 * time.Second)
				wantLen(t, q, 1)
			},
			want: map[string]float64{"depth": 1, "adds": 1, "retries": 1},
		},
		{
			name: "latency is from due to Get, work duration from Get to Done",
			run: func(t *testing.T, q priorityqueue.PriorityQueue[string]) {
				q.AddAfter("a", time.Second)
				time.Sleep(4 * time.Second)
				wantNext(t, q, "a")
				time.Sleep(100 * time.Millisecond)
				q.Done("a")
			},
			want: map[string]float64{"adds": 1, "retries": 1, "latency": 3, "work duration": 0.1},
		},
		{
			name: "a request added while a worker has it counts in the depth",
			run: func(t *testing.T, q priorityqueue.PriorityQueue[string]) {
				q.Add("a")
				wantNext(t, q, "a")
				q.Add("a")
				wantLen(t, q, 1)
			},
			want: map[string]float64{"depth": 1, "adds": 2},
		},
		{
			name: "unfinished work is updated every half second",
			run: func(t *testing.T, q priorityqueue.PriorityQueue[string]) {
				q.Add("a")
				q.Add("b")
				wantNext(t, q, "a")
				time.Sleep(time.Second)
				wantNext(t, q, "b")
				time.Sleep(1250 * time.Millisecond)
			},
			want: map[string]float64{"adds": 2, "latency": 1, "unfinished": 3, "longest running": 2},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			provider := newFakeMetrics()
			forEachQueue(t, provider, func(t *testing.T, q priorityqueue.PriorityQueue[string]) {
				clear(provider.values)
				tc.run(t, q)
				synctest.Wait()
				if values := provider.snapshot(); !maps.Equal(values, tc.want) {
					t.Fatalf("got metrics %v, want %v", values, tc.want)
				}
			})
		})
	}
}

func TestDepthByPriority(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		provider := newFakeMetrics()
		q := newQueue(t, queue.Options[string]{MetricProvider: fakePriorityMetrics{provider}})
		wantDepths := func(want map[string]float64) {
			t.Helper()
			values := provider.snapshot()
			maps.DeleteFunc(values, func(name string, _ float64) bool { return !strings.HasPrefix(name, "depth") })
			if !maps.Equal(values, want) {
				t.Fatalf("got %v, want %v", values, want)
			}
		}

		q.AddWithOpts(opts{Priority: new(5)}, "eu/a", "eu/b")
		q.Add("us/a")
		wantDepths(map[string]float64{"depth 0": 1, "depth 5": 2})

		q.AddWithOpts(opts{Priority: new(7)}, "us/a")
		wantDepths(map[string]float64{"depth 5": 2, "depth 7": 1})

		q.Pause("us", "syncing")
		wantDepths(map[string]float64{"depth 5": 2, "depth 7": 1})

		get(q).returns(t, got{item: "eu/a", priority: 5})
		wantDepths(map[string]float64{"depth 5": 1, "depth 7": 1})

		q.Drop("us")
		wantDepths(map[string]float64{"depth 5": 1})
	})
}

func TestMetricsSeriesAreShared(t *testing.T) {
	name := fmt.Sprintf("queue-%x", rand.Uint64())
	theirs := priorityqueue.New[string](name)
	defer theirs.ShutDown()
	ours := queue.New(name, queue.Options[string]{})
	defer ours.ShutDown()

	theirs.AddWithOpts(opts{Priority: new(3)}, "a")
	theirs.Len() // counts what was added
	ours.AddWithOpts(opts{Priority: new(3)}, "a", "b")

	labels := fmt.Sprintf("controller=%s,name=%s", name, name)
	if v := gather(t, ctrlmetrics.Registry, "workqueue_adds_total")[labels]; v != 3 {
		t.Errorf("got %v adds, want the 3 of both queues", v)
	}
	if v := gather(t, ctrlmetrics.Registry, "workqueue_depth")[labels+",priority=3"]; v != 3 {
		t.Errorf("got depth %v, want the 3 of both queues", v)
	}
}

// gather returns the values of a counter or gauge by labels.
func gather(t *testing.T, registry prometheus.Gatherer, name string) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	series := map[string]float64{}
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, metric := range family.GetMetric() {
			var labels []string
			for _, label := range metric.GetLabel() {
				labels = append(labels, label.GetName()+"="+label.GetValue())
			}
			series[strings.Join(labels, ",")] = metric.GetCounter().GetValue() + metric.GetGauge().GetValue()
		}
	}
	return series
}

func TestMetricsAreFoundInRegistry(t *testing.T) {
	counting := &countingRegisterer{Registerer: ctrlmetrics.Registry}
	if _, err := queue.NewPrometheusMetrics(counting); err != nil {
		t.Fatal(err)
	}
	if counting.added != 0 || counting.found != 7 {
		t.Fatalf("found %d metrics and added %d, want 7 and 0", counting.found, counting.added)
	}
}

// countingRegisterer counts new and existing collectors.
type countingRegisterer struct {
	prometheus.Registerer
	added, found int
}

func (r *countingRegisterer) Register(c prometheus.Collector) error {
	err := r.Registerer.Register(c)
	if err == nil {
		r.added++
	} else if _, ok := errors.AsType[prometheus.AlreadyRegisteredError](err); ok {
		r.found++
	}
	return err
}

func TestMetricsConflictInRegistry(t *testing.T) {
	registry := prometheus.NewRegistry()
	registry.MustRegister(prometheus.NewGauge(prometheus.GaugeOpts{Name: "workqueue_depth", Help: "Something else"}))

	provider, err := queue.NewPrometheusMetrics(registry)
	if err == nil || !strings.Contains(err.Error(), "workqueue_depth") {
		t.Fatalf("got error %v, want one that names workqueue_depth", err)
	}
	provider.NewDepthMetricWithPriority("q").Inc(0)
	provider.NewAddsMetric("q").Inc()
	if series := gather(t, registry, "workqueue_adds_total"); len(series) != 1 {
		t.Fatalf("got %v, want the other metrics to be registered", series)
	}
}

func TestDepthSeriesAreLimited(t *testing.T) {
	registry := prometheus.NewRegistry()
	provider, err := queue.NewPrometheusMetrics(registry)
	if err != nil {
		t.Fatal(err)
	}
	depth := provider.NewDepthMetricWithPriority("q")
	for priority := range 100 {
		depth.Inc(priority)
	}
	if series := gather(t, registry, "workqueue_depth"); len(series) != 26 {
		t.Fatalf("got %d series, want 25 and one for the rest", len(series))
	}
	for priority := range 100 {
		depth.Dec(priority)
	}
	for labels, v := range gather(t, registry, "workqueue_depth") {
		if v != 0 {
			t.Errorf("got %v for %s, want all to be back at 0", v, labels)
		}
	}
}
