// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package queue_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollcall-dev/rollcall/pkg/mc/queue"
)

func TestPause(t *testing.T) {
	for _, tc := range []struct {
		name string
		run  func(t *testing.T, q *queue.Queue[string])
	}{
		{"requests of a paused cluster wait, others pass them", func(t *testing.T, q *queue.Queue[string]) {
			q.AddWithOpts(opts{}, "a/1", "b/1")
			q.Pause("a", "degraded")
			wantNext(t, q, "b/1")
			next := get(q)
			next.blocks(t)
			q.Resume("a", "degraded")
			next.returns(t, got{item: "a/1"})
		}},
		{"a cluster is paused before it has requests", func(t *testing.T, q *queue.Queue[string]) {
			q.Pause("a", "syncing")
			q.Add("a/1")
			next := get(q)
			next.blocks(t)
			q.Resume("a", "syncing")
			next.returns(t, got{item: "a/1"})
		}},
		{"each reason is resumed separately", func(t *testing.T, q *queue.Queue[string]) {
			q.Add("a/1")
			q.Pause("a", "syncing")
			q.Pause("a", "degraded")
			next := get(q)
			q.Resume("a", "degraded")
			q.Resume("a", "degraded")
			q.Resume("a", "unknown")
			next.blocks(t)
			q.Resume("a", "syncing")
			next.returns(t, got{item: "a/1"})
		}},
		{"pausing twice for one reason is the same as once", func(t *testing.T, q *queue.Queue[string]) {
			q.Add("a/1")
			q.Pause("a", "syncing")
			q.Pause("a", "syncing")
			q.Resume("a", "syncing")
			wantNext(t, q, "a/1")
		}},
		{"requests of a paused cluster are deduplicated, raised and become due", func(t *testing.T, q *queue.Queue[string]) {
			q.Pause("a", "degraded")
			q.AddWithOpts(opts{}, "a/1", "a/2", "a/1")
			q.AddWithOpts(opts{Priority: new(3)}, "a/2")
			q.AddAfter("a/3", time.Second)
			wantDepth(t, q, "a", queue.Depth{Waiting: 2, Delayed: 1})
			time.Sleep(time.Second)
			wantDepth(t, q, "a", queue.Depth{Waiting: 3})
			wantLen(t, q, 3)
			q.Resume("a", "degraded")
			get(q).returns(t, got{item: "a/2", priority: 3})
			wantNext(t, q, "a/1", "a/3")
		}},
		{"a request with a worker finishes and is added again", func(t *testing.T, q *queue.Queue[string]) {
			q.Add("a/1")
			wantNext(t, q, "a/1")
			q.Pause("a", "degraded")
			q.Add("a/1")
			q.Done("a/1")
			next := get(q)
			next.blocks(t)
			q.Resume("a", "degraded")
			next.returns(t, got{item: "a/1"})
		}},
		{"Resume wakes one worker for each request", func(t *testing.T, q *queue.Queue[string]) {
			q.Pause("a", "syncing")
			q.AddWithOpts(opts{}, "a/1", "a/2", "a/3")
			workers := []getting{get(q), get(q), get(q), get(q)}
			q.Resume("a", "syncing")
			wantDepth(t, q, "a", queue.Depth{Processing: 3})
			q.ShutDown()
			for _, w := range workers {
				<-w.result
			}
		}},
		{"the local cluster can be paused", func(t *testing.T, q *queue.Queue[string]) {
			q.AddWithOpts(opts{}, "1", "a/1")
			q.Pause("", "syncing")
			wantNext(t, q, "a/1")
			get(q).blocks(t)
		}},
		{"no state remains after Resume", func(t *testing.T, q *queue.Queue[string]) {
			q.Pause("a", "syncing")
			q.Resume("a", "syncing")
			q.Resume("b", "syncing")
			wantKnownClusters(t, q, 0)
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tc.run(t, newQueue(t, queue.Options[string]{}))
			})
		})
	}
}

func TestDrop(t *testing.T) {
	for _, tc := range []struct {
		name string
		run  func(t *testing.T, q *queue.Queue[string])
	}{
		{"removes all requests of the cluster, and none of others", func(t *testing.T, q *queue.Queue[string]) {
			q.AddWithOpts(opts{}, "a/1", "a/2", "b/1")
			q.AddWithOpts(opts{Priority: new(4)}, "a/high")
			q.AddAfter("a/later", time.Second)
			q.AddRateLimited("a/failed")
			q.AddAfter("b/later", time.Second)
			q.Drop("a")
			wantDepth(t, q, "a", queue.Depth{})
			wantKnownClusters(t, q, 1)
			wantLen(t, q, 1)
			if n := q.NumRequeues("a/failed"); n != 0 {
				t.Fatalf("got %d requeues, want none", n)
			}
			wantNext(t, q, "b/1")
			time.Sleep(time.Second)
			wantNext(t, q, "b/later")
			get(q).blocks(t)
		}},
		{"an unknown cluster", func(t *testing.T, q *queue.Queue[string]) {
			q.Drop("a")
			wantKnownClusters(t, q, 0)
		}},
		{"ends pauses", func(t *testing.T, q *queue.Queue[string]) {
			q.Pause("a", "syncing")
			q.Pause("a", "degraded")
			q.Drop("a")
			wantKnownClusters(t, q, 0)
			q.Add("a/1")
			wantNext(t, q, "a/1")
		}},
		{"a requeue after an error is ignored", func(t *testing.T, q *queue.Queue[string]) {
			q.Add("a/1")
			wantNext(t, q, "a/1")
			q.Drop("a")
			q.AddRateLimited("a/1")
			q.Done("a/1")
			wantKnownClusters(t, q, 0)
			if n := q.NumRequeues("a/1"); n != 0 {
				t.Fatalf("got %d requeues, want none", n)
			}
		}},
		{"a requeue with RequeueAfter is ignored", func(t *testing.T, q *queue.Queue[string]) {
			q.Add("a/1")
			wantNext(t, q, "a/1")
			q.Drop("a")
			q.AddAfter("a/1", time.Second)
			q.Done("a/1")
			wantKnownClusters(t, q, 0)
			next := get(q)
			time.Sleep(time.Hour)
			next.blocks(t)
		}},
		{"removes adds of a request that a worker has", func(t *testing.T, q *queue.Queue[string]) {
			q.AddWithOpts(opts{}, "a/1", "a/2")
			wantNext(t, q, "a/1", "a/2")
			q.Add("a/1")
			q.AddAfter("a/2", time.Second)
			q.Drop("a")
			wantDepth(t, q, "a", queue.Depth{Processing: 2})
			wantLen(t, q, 0)
			q.Done("a/1")
			q.Done("a/2")
			wantKnownClusters(t, q, 0)
		}},
		{"a plain add of a request that a worker has is new", func(t *testing.T, q *queue.Queue[string]) {
			q.Add("a/1")
			wantNext(t, q, "a/1")
			q.Drop("a")
			q.AddWithOpts(opts{Priority: new(-5)}, "a/1")
			q.AddRateLimited("a/1")
			next := get(q)
			next.blocks(t)
			q.Done("a/1")
			next.returns(t, got{item: "a/1", priority: -5})
			q.AddAfter("a/1", time.Second)
			q.Done("a/1")
			next = get(q)
			time.Sleep(time.Second)
			next.returns(t, got{item: "a/1"})
		}},
		{"any add from a source is new, also delayed or rate limited", func(t *testing.T, q *queue.Queue[string]) {
			q.AddWithOpts(opts{}, "a/1", "a/2")
			wantNext(t, q, "a/1", "a/2")
			q.Drop("a")
			q.AddFromSource(opts{After: time.Second}, "a/1")
			q.AddFromSource(opts{RateLimited: true}, "a/2")
			q.AddRateLimited("a/1") // requeue of the first reconcile
			wantDepth(t, q, "a", queue.Depth{Delayed: 2, Processing: 2})
			q.Done("a/1")
			q.Done("a/2")
			time.Sleep(time.Second)
			wantNext(t, q, "a/2", "a/1")
		}},
		{"any add of a request that no worker has is new", func(t *testing.T, q *queue.Queue[string]) {
			q.AddWithOpts(opts{}, "a/1", "a/2")
			wantNext(t, q, "a/1")
			q.Drop("a")
			q.AddAfter("a/2", time.Second)
			next := get(q)
			time.Sleep(time.Second)
			next.returns(t, got{item: "a/2"})
		}},
		{"requeues after Done are not ignored", func(t *testing.T, q *queue.Queue[string]) {
			q.Add("a/1")
			wantNext(t, q, "a/1")
			q.Drop("a")
			q.Done("a/1")
			q.AddAfter("a/1", time.Second)
			wantDepth(t, q, "a", queue.Depth{Delayed: 1})
		}},
		{"drop, add and drop again during one reconcile", func(t *testing.T, q *queue.Queue[string]) {
			q.Add("a/1")
			wantNext(t, q, "a/1")
			q.Drop("a")
			q.Add("a/1")
			q.Drop("a")
			q.AddRateLimited("a/1")
			q.Done("a/1")
			wantKnownClusters(t, q, 0)
		}},
		{"Dropped reports a drop since Get", func(t *testing.T, q *queue.Queue[string]) {
			q.AddWithOpts(opts{}, "a/1", "a/2", "b/1")
			wantNext(t, q, "a/1", "b/1")
			wantDropped(t, q)
			q.Drop("a")
			wantDropped(t, q, "a/1")
			q.Add("a/1")
			wantDropped(t, q, "a/1")
			q.Done("a/1")
			wantDropped(t, q)
			wantNext(t, q, "a/1")
			wantDropped(t, q)
		}},
		{"workers from before Drop count towards the limit", func(t *testing.T, q *queue.Queue[string]) {
			q.AddWithOpts(opts{}, "a/1", "a/2")
			wantNext(t, q, "a/1", "a/2")
			q.Drop("a")
			q.Add("a/3")
			next := get(q)
			next.blocks(t)
			q.Done("a/1")
			next.returns(t, got{item: "a/3"})
		}},
		{"pauses from before Drop do not apply afterwards", func(t *testing.T, q *queue.Queue[string]) {
			q.Pause("a", "degraded")
			q.Drop("a")
			q.Pause("a", "syncing")
			q.Add("a/1")
			next := get(q)
			next.blocks(t)
			q.Resume("a", "syncing")
			next.returns(t, got{item: "a/1"})
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tc.run(t, newQueue(t, queue.Options[string]{MaxPerCluster: 2}))
			})
		})
	}
}

func TestSetMaxPerCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, queue.Options[string]{})
		q.AddWithOpts(opts{}, "a/1", "a/2", "a/3", "a/4", "b/1")
		wantNext(t, q, "a/1", "b/1")
		q.SetMaxPerCluster(1)
		next := []getting{get(q), get(q), get(q)}
		next[0].blocks(t)
		q.SetMaxPerCluster(3)
		wantDepth(t, q, "a", queue.Depth{Waiting: 1, Processing: 3})
		q.SetMaxPerCluster(1)
		q.Done("a/1")
		wantDepth(t, q, "a", queue.Depth{Waiting: 1, Processing: 2})
		q.SetMaxPerCluster(0)
		wantDepth(t, q, "a", queue.Depth{Processing: 3})
		for _, n := range next {
			<-n.result
		}
	})
}

func TestDepth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, queue.Options[string]{})
		wantDepth(t, q, "a", queue.Depth{})

		q.AddWithOpts(opts{}, "a/1", "a/2", "a/3", "b/1")
		q.AddAfter("a/4", time.Second)
		wantDepth(t, q, "a", queue.Depth{Waiting: 3, Delayed: 1})
		wantDepth(t, q, "b", queue.Depth{Waiting: 1})

		wantNext(t, q, "a/1", "b/1")
		q.Add("a/1")
		q.AddAfter("b/1", time.Minute)
		wantDepth(t, q, "a", queue.Depth{Waiting: 3, Delayed: 1, Processing: 1})
		wantDepth(t, q, "b", queue.Depth{Delayed: 1, Processing: 1})

		time.Sleep(time.Second)
		q.Done("a/1")
		wantDepth(t, q, "a", queue.Depth{Waiting: 4})
	})
}

func TestIdleClustersAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, queue.Options[string]{})
		q.AddWithOpts(opts{}, "a/1", "b/1", "1")
		q.AddAfter("c/1", time.Second)
		wantKnownClusters(t, q, 4)
		time.Sleep(time.Second)
		wantServed(t, q, "a/1", "b/1", "1", "c/1")
		wantKnownClusters(t, q, 0)
	})
}

func wantKnownClusters(t *testing.T, q *queue.Queue[string], want int) {
	t.Helper()
	if n := q.KnownClusters(); n != want {
		t.Fatalf("the queue has state of %d clusters, want %d", n, want)
	}
}

func wantDropped(t *testing.T, q *queue.Queue[string], want ...string) {
	t.Helper()
	for _, item := range []string{"a/1", "a/2", "b/1", "c/1"} {
		if got := q.Dropped(item); got != slices.Contains(want, item) {
			t.Fatalf("got Dropped %t of %s", got, item)
		}
	}
}
