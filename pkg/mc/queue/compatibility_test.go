// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package queue_test

import (
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"

	"github.com/rollcall-dev/rollcall/pkg/mc/queue"
)

type opts = priorityqueue.AddOpts

// TestCompatibility also runs on controller-runtime's queue: both must pass.
func TestCompatibility(t *testing.T) {
	for _, tc := range []struct {
		name string
		run  func(t *testing.T, q priorityqueue.PriorityQueue[string])
	}{
		{"requests are served in order of arrival", func(t *testing.T, q priorityqueue.PriorityQueue[string]) {
			q.Add("a")
			q.Add("b")
			q.AddWithOpts(opts{}, "c", "d")
			wantNext(t, q, "a", "b", "c", "d")
		}},
		{"a queued request is not queued again and keeps its position", func(t *testing.T, q priorityqueue.PriorityQueue[string]) {
			q.Add("a")
			q.Add("b")
			q.Add("a")
			wantLen(t, q, 2)
			wantNext(t, q, "a", "b")
			wantLen(t, q, 0)
		}},
		{"a request added while a worker has it is served again after Done", func(t *testing.T, q priorityqueue.PriorityQueue[string]) {
			q.Add("a")
			wantNext(t, q, "a")
			q.Add("a")
			q.Add("b")
			wantLen(t, q, 2)
			wantNext(t, q, "b")
			next := get(q)
			next.blocks(t)
			q.Done("a")
			next.returns(t, got{item: "a"})
		}},
		{"a request added while a worker has it keeps its position", func(t *testing.T, q priorityqueue.PriorityQueue[string]) {
			q.Add("a")
			wantNext(t, q, "a")
			q.Add("a")
			q.Add("b")
			wantLen(t, q, 2)
			q.Done("a")
			wantNext(t, q, "a", "b")
		}},
		{"a request not added again is not served again", func(t *testing.T, q priorityqueue.PriorityQueue[string]) {
			q.Add("a")
			wantServed(t, q, "a")
			get(q).blocks(t)
		}},
		{"Done without Get does nothing", func(t *testing.T, q priorityqueue.PriorityQueue[string]) {
			q.Done("a")
			q.Add("a")
			synctest.Wait()
			q.Done("a")
			wantNext(t, q, "a")
		}},
		{"a higher priority goes first", func(t *testing.T, q priorityqueue.PriorityQueue[string]) {
			q.AddWithOpts(opts{Priority: new(-10)}, "low")
			q.Add("default")
			q.AddWithOpts(opts{Priority: new(10)}, "high")
			get(q).returns(t, got{item: "high", priority: 10})
			get(q).returns(t, got{item: "default", priority: 0})
			get(q).returns(t, got{item: "low", priority: -10})
		}},
		{"a raised request goes to the end of its new priority", func(t *testing.T, q priorityqueue.PriorityQueue[string]) {
			q.Add("a")
			q.Add("b")
			q.AddWithOpts(opts{Priority: new(1)}, "c")
			q.AddWithOpts(opts{Priority: new(1)}, "a")
			wantLen(t, q, 3)
			get(q).returns(t, got{item: "c", priority: 1})
			get(q).returns(t, got{item: "a", priority: 1})
			get(q).returns(t, got{item: "b", priority: 0})
		}},
		{"a priority is never lowered", func(t *testing.T, q priorityqueue.PriorityQueue[string]) {
			q.AddWithOpts(opts{Priority: new(2)}, "a")
			q.AddWithOpts(opts{Priority: new(1)}, "a")
			q.Add("a")
			get(q).returns(t, got{item: "a", priority: 2})
		}},
		{"a request that a worker has gets the priority of the next add", func(t *testing.T, q priorityqueue.PriorityQueue[string]) {
			q.AddWithOpts(opts{Priority: new(2)}, "a")
			get(q).returns(t, got{item: "a", priority: 2})
			q.AddWithOpts(opts{Priority: new(1)}, "a")
			synctest.Wait()
			q.Done("a")
			get(q).returns(t, got{item: "a", priority: 1})
		}},
		{"a delayed request is served when due and not in Len before", func(t *testing.T, q priorityqueue.PriorityQueue[string]) {
			q.AddAfter("a", time.Minute)
			next := get(q)
			next.blocks(t)
			wantLen(t, q, 0)
			time.Sleep(time.Minute - 1)
			next.blocks(t)
			time.Sleep(1)
			next.returns(t, got{item: "a"})
		}},
		{"delayed requests are served in the order of their times", func(t *testing.T, q priorityqueue.PriorityQueue[string]) {
			q.AddAfter("late", 2*time.Second)
			q.AddAfter("early", time.Second)
			time.Sleep(3 * time.Second)
			q.Add("now")
			wantNext(t, q, "early", "late", "now")
		}},
		{"of two delays the earlier time applies", func(t *testing.T, q priorityqueue.PriorityQueue[string]) {
			q.AddAfter("a", time.Second)
			q.AddAfter("a", time.Hour)
			q.AddAfter("b", time.Hour)
			q.AddAfter("b", 2*time.Second)
			next := get(q)
			time.Sleep(time.Second)
			next.returns(t, got{item: "a"})
			next = get(q)
			time.Sleep(time.Second)
			next.returns(t, got{item: "b"})
			next = get(q)
			time.Sleep(2 * time.Hour)
			next.blocks(t)
		}},
		{"a plain add makes a delayed request due, in its first position", func(t *testing.T, q priorityqueue.PriorityQueue[string]) {
			q.AddAfter("a", time.Hour)
			q.Add("b")
			q.Add("a")
			wantNext(t, q, "a", "b")
		}},
		{"a delay does not defer a request that is due", func(t *testing.T, q priorityqueue.PriorityQueue[string]) {
			q.Add("a")
			q.AddAfter("a", time.Hour)
			wantNext(t, q, "a")
		}},
		{"a delayed request can be raised", func(t *testing.T, q priorityqueue.PriorityQueue[string]) {
			q.AddAfter("a", time.Second)
			q.AddAfter("b", time.Second)
			q.AddWithOpts(opts{After: time.Hour, Priority: new(5)}, "b")
			time.Sleep(time.Second)
			get(q).returns(t, got{item: "b", priority: 5})
			get(q).returns(t, got{item: "a", priority: 0})
		}},
		{"a raised delayed request goes behind those due at the same time", func(t *testing.T, q priorityqueue.PriorityQueue[string]) {
			q.AddAfter("a", time.Second)
			q.AddWithOpts(opts{After: time.Second, Priority: new(5)}, "b")
			q.AddWithOpts(opts{After: time.Hour, Priority: new(5)}, "a")
			time.Sleep(time.Second)
			get(q).returns(t, got{item: "b", priority: 5})
			get(q).returns(t, got{item: "a", priority: 5})
		}},
		{"a request delayed while a worker has it waits for both", func(t *testing.T, q priorityqueue.PriorityQueue[string]) {
			q.Add("a")
			q.Add("b")
			wantNext(t, q, "a", "b")
			q.AddAfter("a", time.Second)
			q.AddAfter("b", time.Second)
			synctest.Wait()
			q.Done("a")
			next := get(q)
			next.blocks(t)
			time.Sleep(time.Second)
			next.returns(t, got{item: "a"})
			next = get(q)
			next.blocks(t)
			q.Done("b")
			next.returns(t, got{item: "b"})
		}},
		{"a delay of zero or less is no delay", func(t *testing.T, q priorityqueue.PriorityQueue[string]) {
			q.AddAfter("a", -time.Second)
			q.AddAfter("b", 0)
			wantNext(t, q, "a", "b")
		}},
		{"rate-limited adds wait longer each time until Forget", func(t *testing.T, q priorityqueue.PriorityQueue[string]) {
			for _, delay := range []time.Duration{5 * time.Millisecond, 10 * time.Millisecond, 20 * time.Millisecond} {
				q.AddRateLimited("a")
				next := get(q)
				time.Sleep(delay - 1)
				next.blocks(t)
				time.Sleep(1)
				next.returns(t, got{item: "a"})
				q.Done("a")
			}
			if n := q.NumRequeues("a"); n != 3 {
				t.Fatalf("got %d requeues, want 3", n)
			}
			q.Forget("a")
			if n := q.NumRequeues("a"); n != 0 {
				t.Fatalf("got %d requeues after Forget, want 0", n)
			}
			q.AddRateLimited("a")
			time.Sleep(5 * time.Millisecond)
			wantNext(t, q, "a")
		}},
		{"of a delay and a rate limit the shorter applies", func(t *testing.T, q priorityqueue.PriorityQueue[string]) {
			q.AddWithOpts(opts{RateLimited: true, After: time.Hour}, "a")
			time.Sleep(5 * time.Millisecond)
			wantNext(t, q, "a")
			q.AddWithOpts(opts{RateLimited: true, After: time.Millisecond}, "b")
			time.Sleep(time.Millisecond)
			wantNext(t, q, "b")
		}},
		{"ShutDown ends Get, discards requests and ignores adds", func(t *testing.T, q priorityqueue.PriorityQueue[string]) {
			blocked := get(q)
			blocked.blocks(t)
			q.AddAfter("later", time.Hour)
			synctest.Wait()
			q.ShutDown()
			blocked.returns(t, got{shutdown: true})
			q.Add("a")
			q.AddRateLimited("a")
			get(q).returns(t, got{shutdown: true})
			wantLen(t, q, 0)
			if !q.ShuttingDown() {
				t.Fatal("is not shutting down")
			}
		}},
		{"ShutDown discards due requests and lets a worker finish", func(t *testing.T, q priorityqueue.PriorityQueue[string]) {
			q.Add("a")
			q.Add("b")
			wantNext(t, q, "a")
			q.ShutDown()
			get(q).returns(t, got{shutdown: true})
			q.Done("a")
			q.Forget("a")
		}},
		{"ShutDownWithDrain ends an idle queue", func(t *testing.T, q priorityqueue.PriorityQueue[string]) {
			blocked := get(q)
			blocked.blocks(t)
			q.ShutDownWithDrain()
			blocked.returns(t, got{shutdown: true})
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			forEachQueue(t, nil, tc.run)
		})
	}
}

// forEachQueue runs a test on both queues, each in a synctest bubble.
func forEachQueue(t *testing.T, provider workqueue.MetricsProvider, run func(*testing.T, priorityqueue.PriorityQueue[string])) {
	for name, newQueue := range map[string]func() priorityqueue.PriorityQueue[string]{
		"controller-runtime": func() priorityqueue.PriorityQueue[string] {
			return priorityqueue.New("test", func(o *priorityqueue.Opts[string]) { o.MetricProvider = provider })
		},
		"rollcall": func() priorityqueue.PriorityQueue[string] {
			return queue.New("test", queue.Options[string]{MetricProvider: provider})
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := newQueue()
				defer func() {
					if !q.ShuttingDown() {
						q.ShutDown()
					}
				}()
				run(t, q)
			})
		})
	}
}
