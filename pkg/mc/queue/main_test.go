// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package queue_test

import (
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"

	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
	"github.com/rollcall-dev/rollcall/pkg/mc/queue"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

// clusterOf returns the cluster of a request: "eu" for "eu/a", and the local
// cluster for a request without a slash.
func clusterOf(request string) multicluster.ClusterName {
	name, _, ok := strings.Cut(request, "/")
	if !ok {
		return ""
	}
	return multicluster.ClusterName(name)
}

// newQueue returns a queue that is shut down when the test ends. The default of
// ClusterOf is clusterOf.
func newQueue(t *testing.T, options queue.Options[string]) *queue.Queue[string] {
	t.Helper()
	if options.ClusterOf == nil {
		options.ClusterOf = clusterOf
	}
	q := queue.New("test", options)
	t.Cleanup(q.ShutDown)
	return q
}

// got is the result of a Get.
type got struct {
	item     string
	priority int
	shutdown bool
}

// getting is a Get that may still be blocked.
type getting struct{ result chan got }

// get calls GetWithPriority in a goroutine of its own. It needs a synctest
// bubble.
func get(q priorityqueue.PriorityQueue[string]) getting {
	synctest.Wait()
	g := getting{result: make(chan got, 1)}
	go func() {
		var r got
		r.item, r.priority, r.shutdown = q.GetWithPriority()
		g.result <- r
	}()
	return g
}

func (g getting) blocks(t *testing.T) {
	t.Helper()
	synctest.Wait()
	select {
	case r := <-g.result:
		t.Fatalf("Get returned %+v, want it to block", r)
	default:
	}
}

func (g getting) returns(t *testing.T, want got) {
	t.Helper()
	synctest.Wait()
	select {
	case r := <-g.result:
		if r != want {
			t.Fatalf("Get returned %+v, want %+v", r, want)
		}
	default:
		t.Fatalf("Get blocks, want it to return %+v", want)
	}
}

// wantNext gets requests of priority 0 without calling Done.
func wantNext(t *testing.T, q priorityqueue.PriorityQueue[string], items ...string) {
	t.Helper()
	for _, item := range items {
		get(q).returns(t, got{item: item})
	}
}

// wantServed gets requests of priority 0 and calls Done with each before the next.
func wantServed(t *testing.T, q priorityqueue.PriorityQueue[string], items ...string) {
	t.Helper()
	for _, item := range items {
		wantNext(t, q, item)
		q.Done(item)
	}
}

func wantLen(t *testing.T, q workqueue.TypedInterface[string], want int) {
	t.Helper()
	synctest.Wait()
	if l := q.Len(); l != want {
		t.Fatalf("got Len %d, want %d", l, want)
	}
}

func wantDepth(t *testing.T, q *queue.Queue[string], cluster multicluster.ClusterName, want queue.Depth) {
	t.Helper()
	synctest.Wait()
	if depth := q.Depth(cluster); depth != want {
		t.Fatalf("got depth %+v of cluster %q, want %+v", depth, cluster, want)
	}
}

// fakeMetrics is a metrics provider for one queue. Histograms have the last
// observation as their value.
type fakeMetrics struct {
	mu     sync.Mutex
	values map[string]float64
}

func newFakeMetrics() *fakeMetrics {
	return &fakeMetrics{values: map[string]float64{}}
}

// snapshot returns the values that are not zero.
func (f *fakeMetrics) snapshot() map[string]float64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	values := maps.Clone(f.values)
	maps.DeleteFunc(values, func(_ string, v float64) bool { return v == 0 })
	return values
}

type fakeMetric struct {
	provider *fakeMetrics
	name     string
}

func (m fakeMetric) add(v float64) {
	m.provider.mu.Lock()
	defer m.provider.mu.Unlock()
	m.provider.values[m.name] += v
}

func (m fakeMetric) Inc()              { m.add(1) }
func (m fakeMetric) Dec()              { m.add(-1) }
func (m fakeMetric) Observe(v float64) { m.Set(v) }

func (m fakeMetric) Set(v float64) {
	m.provider.mu.Lock()
	defer m.provider.mu.Unlock()
	m.provider.values[m.name] = v
}

func (f *fakeMetrics) NewDepthMetric(string) workqueue.GaugeMetric  { return fakeMetric{f, "depth"} }
func (f *fakeMetrics) NewAddsMetric(string) workqueue.CounterMetric { return fakeMetric{f, "adds"} }
func (f *fakeMetrics) NewRetriesMetric(string) workqueue.CounterMetric {
	return fakeMetric{f, "retries"}
}

func (f *fakeMetrics) NewLatencyMetric(string) workqueue.HistogramMetric {
	return fakeMetric{f, "latency"}
}

func (f *fakeMetrics) NewWorkDurationMetric(string) workqueue.HistogramMetric {
	return fakeMetric{f, "work duration"}
}

func (f *fakeMetrics) NewUnfinishedWorkSecondsMetric(string) workqueue.SettableGaugeMetric {
	return fakeMetric{f, "unfinished"}
}

func (f *fakeMetrics) NewLongestRunningProcessorSecondsMetric(string) workqueue.SettableGaugeMetric {
	return fakeMetric{f, "longest running"}
}

// fakePriorityMetrics has the depth by priority, such as "depth 10".
type fakePriorityMetrics struct{ *fakeMetrics }

func (f fakePriorityMetrics) NewDepthMetricWithPriority(string) queue.DepthMetric {
	return fakeDepth(f)
}

type fakeDepth struct{ *fakeMetrics }

func (f fakeDepth) Inc(priority int) {
	fakeMetric{f.fakeMetrics, fmt.Sprintf("depth %d", priority)}.Inc()
}
func (f fakeDepth) Dec(priority int) {
	fakeMetric{f.fakeMetrics, fmt.Sprintf("depth %d", priority)}.Dec()
}
