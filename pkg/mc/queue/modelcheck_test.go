// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package queue_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/util/workqueue"
	"pgregory.net/rapid"

	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
	"github.com/rollcall-dev/rollcall/pkg/mc/queue"
)

// TestModel runs random operations on a queue and on the model, and compares
// their observable state after each one. A failure reports the seed and the
// shortest list of operations that fails.
func TestModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		limit := rapid.IntRange(0, 2).Draw(rt, "limit")
		operations := rapid.SliceOfN(operationGenerator, 100, 100).Draw(rt, "operations")
		var failure string
		synctest.Test(t, func(t *testing.T) {
			failure = compareWithModel(limit, operations)
		})
		if failure != "" {
			operations = slices.DeleteFunc(operations, func(o operation) bool { return o.call == "nothing" })
			rt.Fatalf("%s\nafter operations %+v", failure, operations)
		}
	})
}

// operation is one call of a queue. Which fields are used depends on the call.
// Operations that are not needed for a failure are shrunk to "nothing".
type operation struct {
	call     string
	key      string
	cluster  multicluster.ClusterName
	reason   queue.PauseReason
	priority int
	duration time.Duration
	index    int
}

var (
	modelKeys     = []string{"a/1", "a/2", "a/3", "b/1", "b/2", "b/3", "1", "2"}
	modelClusters = []multicluster.ClusterName{"a", "b", ""}

	operationGenerator = rapid.Custom(func(t *rapid.T) operation {
		return operation{
			call: rapid.SampledFrom([]string{
				"nothing", "Add", "Add", "Add", "AddAfter", "AddRateLimited", "Get", "Get", "Get",
				"Done", "Done", "Forget", "Pause", "Resume", "Drop", "sleep", "sleep long",
				"AddFromSource", "AddFromSourceAfter", "AddFromSourceRateLimited", "SetMaxPerCluster",
			}).Draw(t, "call"),
			key:      rapid.SampledFrom(modelKeys).Draw(t, "key"),
			cluster:  rapid.SampledFrom(modelClusters).Draw(t, "cluster"),
			reason:   rapid.SampledFrom([]queue.PauseReason{"syncing", "degraded"}).Draw(t, "reason"),
			priority: rapid.IntRange(-1, 1).Draw(t, "priority"),
			duration: time.Duration(rapid.IntRange(1, 5).Draw(t, "duration")) * 10 * time.Millisecond,
			index:    rapid.IntRange(0, 10).Draw(t, "index"),
		}
	})
)

// compareWithModel returns the first difference, or "".
func compareWithModel(limit int, operations []operation) string {
	metrics := newFakeMetrics()
	q := queue.New("test", queue.Options[string]{
		ClusterOf:      clusterOf,
		MaxPerCluster:  limit,
		RateLimiter:    workqueue.NewTypedItemExponentialFailureRateLimiter[string](modelBaseDelay, modelMaxDelay),
		MetricProvider: fakePriorityMetrics{metrics},
	})
	defer q.ShutDown()
	m := newModel(limit)
	taken := make(chan got, len(operations))

	for i, o := range operations {
		want := apply(q, m, o, taken)
		synctest.Wait()

		var have []got
		for len(taken) > 0 {
			have = append(have, <-taken)
		}
		// Workers return in any order.
		sortTaken(want)
		sortTaken(have)
		if !slices.Equal(have, want) {
			return fmt.Sprintf("operation %d, %+v: workers got %+v, want %+v", i, o, have, want)
		}
		if difference := compareState(q, m, metrics); difference != "" {
			return fmt.Sprintf("operation %d, %+v: %s", i, o, difference)
		}
	}
	return ""
}

// apply runs an operation on both and returns what workers must get then.
func apply(q *queue.Queue[string], m *model, o operation, taken chan<- got) []got {
	switch o.call {
	case "Add":
		q.AddWithOpts(opts{Priority: &o.priority}, o.key)
		m.add(o.key, o.priority, 0, false)
	case "AddFromSource":
		q.AddFromSource(opts{Priority: &o.priority}, o.key)
		m.addFromSource(o.key, o.priority, 0, false)
	case "AddFromSourceAfter":
		q.AddFromSource(opts{Priority: &o.priority, After: o.duration}, o.key)
		m.addFromSource(o.key, o.priority, o.duration, false)
	case "AddFromSourceRateLimited":
		q.AddFromSource(opts{Priority: &o.priority, RateLimited: true}, o.key)
		m.addFromSource(o.key, o.priority, 0, true)
	case "AddAfter":
		q.AddWithOpts(opts{Priority: &o.priority, After: o.duration}, o.key)
		m.add(o.key, o.priority, o.duration, false)
	case "AddRateLimited":
		q.AddWithOpts(opts{Priority: &o.priority, RateLimited: true}, o.key)
		m.add(o.key, o.priority, 0, true)
	case "Get":
		m.getters++
		go func() {
			item, priority, shutdown := q.GetWithPriority()
			if !shutdown {
				taken <- got{item: item, priority: priority}
			}
		}()
	case "Done":
		if keys := m.processing(); len(keys) > 0 {
			key := keys[o.index%len(keys)]
			q.Done(key)
			m.done(key)
		}
	case "Forget":
		q.Forget(o.key)
		delete(m.failures, o.key)
	case "Pause":
		q.Pause(o.cluster, o.reason)
		m.pause(o.cluster, o.reason)
	case "Resume":
		q.Resume(o.cluster, o.reason)
		m.resume(o.cluster, o.reason)
	case "SetMaxPerCluster":
		q.SetMaxPerCluster(o.index % 4)
		m.limit = o.index % 4
	case "Drop":
		q.Drop(o.cluster)
		m.drop(o.cluster)
	case "sleep":
		time.Sleep(o.duration)
		return m.sleep(o.duration)
	case "sleep long":
		time.Sleep(1000 * o.duration)
		return m.sleep(1000 * o.duration)
	}
	return m.settle()
}

func compareState(q *queue.Queue[string], m *model, metrics *fakeMetrics) string {
	if have, want := q.Len(), m.len(); have != want {
		return fmt.Sprintf("got Len %d, want %d", have, want)
	}
	for _, cluster := range modelClusters {
		if have, want := q.Depth(cluster), m.depth(cluster); have != want {
			return fmt.Sprintf("got depth %+v of cluster %q, want %+v", have, cluster, want)
		}
	}
	for _, key := range modelKeys {
		if have, want := q.NumRequeues(key), m.failures[key]; have != want {
			return fmt.Sprintf("got %d requeues of %s, want %d", have, key, want)
		}
		item := m.items[key]
		if have, want := q.Dropped(key), item != nil && item.dropped; have != want {
			return fmt.Sprintf("got Dropped %t of %s, want %t", have, key, want)
		}
	}
	if have, want := q.KnownClusters(), m.knownClusters(); have != want {
		return fmt.Sprintf("the queue has state of %d clusters, want %d", have, want)
	}
	if have, want := q.Accounts(), len(m.accounts)+len(m.virtualTime); have != want {
		return fmt.Sprintf("the queue has %d accounts, want %d", have, want)
	}
	depths := map[string]float64{}
	for _, item := range m.items {
		if item.waiting {
			depths[fmt.Sprintf("depth %d", item.priority)]++
		}
	}
	for name, have := range metrics.snapshot() {
		if strings.HasPrefix(name, "depth") && have != depths[name] {
			return fmt.Sprintf("got metric %s = %v, want %v", name, have, depths[name])
		}
		delete(depths, name)
	}
	if len(depths) > 0 {
		return fmt.Sprintf("metrics lack %v", depths)
	}
	return ""
}

func sortTaken(taken []got) {
	slices.SortFunc(taken, func(a, b got) int {
		return cmp.Or(cmp.Compare(a.item, b.item), cmp.Compare(a.priority, b.priority))
	})
}
