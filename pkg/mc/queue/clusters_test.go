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

func TestHold(t *testing.T) {
	for _, tc := range []struct {
		name string
		run  func(t *testing.T, q *queue.Queue[string])
	}{
		{"requests of a held cluster wait, and others pass", func(t *testing.T, q *queue.Queue[string]) {
			q.AddWithOpts(opts{}, "a/1", "b/1")
			q.Pause("a", "degraded")
			wantNext(t, q, "b/1")
			next := get(q)
			next.blocks(t)
			q.Resume("a", "degraded")
			next.returns(t, got{item: "a/1"})
		}},
		{"a cluster can be held before it has requests", func(t *testing.T, q *queue.Queue[string]) {
			q.Pause("a", "syncing")
			q.Add("a/1")
			next := get(q)
			next.blocks(t)
			q.Resume("a", "syncing")
			next.returns(t, got{item: "a/1"})
		}},
		{"every reason must be resumed, and none resumes another", func(t *testing.T, q *queue.Queue[string]) {
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
		{"a reason holds once, however often it is given", func(t *testing.T, q *queue.Queue[string]) {
			q.Add("a/1")
			q.Pause("a", "syncing")
			q.Pause("a", "syncing")
			q.Resume("a", "syncing")
			wantNext(t, q, "a/1")
		}},
		{"a held cluster's requests deduplicate, are raised and fall due", func(t *testing.T, q *queue.Queue[string]) {
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
		{"a request with a worker may finish and be added again", func(t *testing.T, q *queue.Queue[string]) {
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
		{"Resume wakes as many workers as there are requests", func(t *testing.T, q *queue.Queue[string]) {
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
		{"the local cluster can be held", func(t *testing.T, q *queue.Queue[string]) {
			q.AddWithOpts(opts{}, "1", "a/1")
			q.Pause("", "syncing")
			wantNext(t, q, "a/1")
			get(q).blocks(t)
		}},
		{"nothing remains of a hold that was resumed", func(t *testing.T, q *queue.Queue[string]) {
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
		{"all that a cluster has queued goes, and nothing of others", func(t *testing.T, q *queue.Queue[string]) {
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
				t.Fatalf("got %d requeues, want the rate limiter to have forgotten", n)
			}
			wantNext(t, q, "b/1")
			time.Sleep(time.Second)
			wantNext(t, q, "b/later")
			get(q).blocks(t)
		}},
		{"a cluster that nothing is known of can be dropped", func(t *testing.T, q *queue.Queue[string]) {
			q.Drop("a")
			wantKnownClusters(t, q, 0)
		}},
		{"holds end", func(t *testing.T, q *queue.Queue[string]) {
			q.Pause("a", "syncing")
			q.Pause("a", "degraded")
			q.Drop("a")
			wantKnownClusters(t, q, 0)
			q.Add("a/1")
			wantNext(t, q, "a/1")
		}},
		{"a worker's requeue after an error is ignored", func(t *testing.T, q *queue.Queue[string]) {
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
		{"a worker's RequeueAfter is ignored", func(t *testing.T, q *queue.Queue[string]) {
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
		{"what was added before Drop to a request with a worker goes", func(t *testing.T, q *queue.Queue[string]) {
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
		{"a plain add of a request with a worker is the cluster's return", func(t *testing.T, q *queue.Queue[string]) {
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
		{"any add of a source is the cluster's return, also delayed or rate limited", func(t *testing.T, q *queue.Queue[string]) {
			q.AddWithOpts(opts{}, "a/1", "a/2")
			wantNext(t, q, "a/1", "a/2")
			q.Drop("a")
			q.AddFromSource(opts{After: time.Second}, "a/1")
			q.AddFromSource(opts{RateLimited: true}, "a/2")
			q.AddRateLimited("a/1") // the old run's
			wantDepth(t, q, "a", queue.Depth{Delayed: 2, Processing: 2})
			q.Done("a/1")
			q.Done("a/2")
			time.Sleep(time.Second)
			wantNext(t, q, "a/2", "a/1")
		}},
		{"a request with no worker is new at once, however it is added", func(t *testing.T, q *queue.Queue[string]) {
			q.AddWithOpts(opts{}, "a/1", "a/2")
			wantNext(t, q, "a/1")
			q.Drop("a")
			q.AddAfter("a/2", time.Second)
			next := get(q)
			time.Sleep(time.Second)
			next.returns(t, got{item: "a/2"})
		}},
		{"after Done of the old run a requeue is a requeue", func(t *testing.T, q *queue.Queue[string]) {
			q.Add("a/1")
			wantNext(t, q, "a/1")
			q.Drop("a")
			q.Done("a/1")
			q.AddAfter("a/1", time.Second)
			wantDepth(t, q, "a", queue.Depth{Delayed: 1})
		}},
		{"a request can be dropped, come back and be dropped again in one run", func(t *testing.T, q *queue.Queue[string]) {
			q.Add("a/1")
			wantNext(t, q, "a/1")
			q.Drop("a")
			q.Add("a/1")
			q.Drop("a")
			q.AddRateLimited("a/1")
			q.Done("a/1")
			wantKnownClusters(t, q, 0)
		}},
		{"a worker can ask whether it happened since it was handed a request", func(t *testing.T, q *queue.Queue[string]) {
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
		{"workers of before count towards the cap of the cluster that returned", func(t *testing.T, q *queue.Queue[string]) {
			q.AddWithOpts(opts{}, "a/1", "a/2")
			wantNext(t, q, "a/1", "a/2")
			q.Drop("a")
			q.Add("a/3")
			next := get(q)
			next.blocks(t)
			q.Done("a/1")
			next.returns(t, got{item: "a/3"})
		}},
		{"a cluster that returns is held by new holds only", func(t *testing.T, q *queue.Queue[string]) {
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

func TestTheCapCanBeChangedWhileWorkersWait(t *testing.T) {
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

func TestNothingRemainsOfAClusterThatHasNoRequests(t *testing.T) {
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
		t.Fatalf("the queue keeps state of %d clusters, want %d", n, want)
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
