// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package queue_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollcall-dev/rollcall/pkg/mc/queue"
)

func TestRoundRobin(t *testing.T) {
	for _, tc := range []struct {
		name string
		run  func(t *testing.T, q *queue.Queue[string])
	}{
		{"clusters are served round-robin, whatever their backlog", func(t *testing.T, q *queue.Queue[string]) {
			q.AddWithOpts(opts{}, "big/1", "big/2", "big/3", "big/4", "mid/1", "mid/2", "small/1")
			wantServed(t, q, "big/1", "mid/1", "small/1", "big/2", "mid/2", "big/3", "big/4")
		}},
		{"the local cluster is treated like the others", func(t *testing.T, q *queue.Queue[string]) {
			q.AddWithOpts(opts{}, "local-1", "local-2", "local-3", "eu/1", "eu/2")
			wantServed(t, q, "local-1", "eu/1", "local-2", "eu/2", "local-3")
		}},
		{"a new cluster waits for one request of each other cluster", func(t *testing.T, q *queue.Queue[string]) {
			for i := range 1000 {
				q.AddWithOpts(opts{}, fmt.Sprintf("a/%d", i), fmt.Sprintf("b/%d", i))
			}
			wantServed(t, q, "a/0", "b/0", "a/1")
			q.Add("new/1")
			wantServed(t, q, "b/1", "a/2", "new/1", "b/2")
		}},
		{"a cluster with one request at a time is served in each round", func(t *testing.T, q *queue.Queue[string]) {
			q.AddWithOpts(opts{}, "a/1", "a/2", "a/3", "a/4", "one/1")
			wantServed(t, q, "a/1", "one/1")
			q.Add("one/2")
			wantServed(t, q, "a/2", "one/2")
			q.Add("one/3")
			wantServed(t, q, "a/3", "one/3", "a/4")
		}},
		{"a higher priority goes first", func(t *testing.T, q *queue.Queue[string]) {
			q.AddWithOpts(opts{}, "eu/1", "us/1")
			q.AddWithOpts(opts{Priority: new(1)}, "eu/high-1", "eu/high-2")
			get(q).returns(t, got{item: "eu/high-1", priority: 1})
			get(q).returns(t, got{item: "eu/high-2", priority: 1})
			wantNext(t, q, "eu/1", "us/1")
		}},
		{"each priority has its own rounds", func(t *testing.T, q *queue.Queue[string]) {
			q.AddWithOpts(opts{}, "a/1", "a/2", "b/1", "b/2", "b/3")
			for _, low := range []string{"a/1", "b/1", "a/2", "b/2", "b/3"} {
				q.AddWithOpts(opts{Priority: new(1)}, "a/high")
				get(q).returns(t, got{item: "a/high", priority: 1})
				q.Done("a/high")
				wantServed(t, q, low)
			}
		}},
		{"a raised request takes part in the rounds of its new priority", func(t *testing.T, q *queue.Queue[string]) {
			q.AddWithOpts(opts{Priority: new(1)}, "a/1", "a/2")
			q.AddWithOpts(opts{}, "b/1")
			q.AddWithOpts(opts{Priority: new(1)}, "b/1")
			get(q).returns(t, got{item: "a/1", priority: 1})
			get(q).returns(t, got{item: "b/1", priority: 1})
			get(q).returns(t, got{item: "a/2", priority: 1})
		}},
		{"delayed requests take part when they are due", func(t *testing.T, q *queue.Queue[string]) {
			q.AddWithOpts(opts{After: time.Second}, "a/1", "a/2", "b/1")
			time.Sleep(time.Second)
			wantServed(t, q, "a/1", "b/1", "a/2")
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tc.run(t, newQueue(t, queue.Options[string]{}))
			})
		})
	}
}

func TestMaxPerCluster(t *testing.T) {
	for _, tc := range []struct {
		name string
		run  func(t *testing.T, q *queue.Queue[string])
	}{
		{"requests of a cluster at its limit wait, others pass them", func(t *testing.T, q *queue.Queue[string]) {
			q.AddWithOpts(opts{}, "a/1", "a/2", "a/3", "a/4")
			wantNext(t, q, "a/1", "a/2")
			next := get(q)
			next.blocks(t)
			q.Add("b/1")
			next.returns(t, got{item: "b/1"})

			next = get(q)
			next.blocks(t)
			q.Done("a/2")
			next.returns(t, got{item: "a/3"})
		}},
		{"the limit applies to high priorities", func(t *testing.T, q *queue.Queue[string]) {
			q.AddWithOpts(opts{}, "a/1", "a/2", "b/1")
			wantNext(t, q, "a/1", "b/1", "a/2")
			q.AddWithOpts(opts{Priority: new(9)}, "a/high")
			q.Add("b/2")
			wantNext(t, q, "b/2")
		}},
		{"the limit applies to the local cluster", func(t *testing.T, q *queue.Queue[string]) {
			q.AddWithOpts(opts{}, "1", "2", "3")
			wantNext(t, q, "1", "2")
			get(q).blocks(t)
		}},
		{"a cluster keeps its position in the round while at its limit", func(t *testing.T, q *queue.Queue[string]) {
			q.AddWithOpts(opts{}, "a/1", "a/2", "a/3", "b/1", "b/2", "b/3")
			wantNext(t, q, "a/1", "b/1", "a/2")
			wantServed(t, q, "b/2")
			q.Done("a/1")
			wantNext(t, q, "a/3", "b/3")
		}},
		{"a request added again at the limit waits for its own Done", func(t *testing.T, q *queue.Queue[string]) {
			q.AddWithOpts(opts{}, "a/1", "a/2")
			wantNext(t, q, "a/1", "a/2")
			q.Add("a/1")
			q.Done("a/2")
			next := get(q)
			next.blocks(t)
			q.Done("a/1")
			next.returns(t, got{item: "a/1"})
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tc.run(t, newQueue(t, queue.Options[string]{MaxPerCluster: 2}))
			})
		})
	}

	t.Run("without a limit a cluster may have every worker", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			q := newQueue(t, queue.Options[string]{})
			for i := range 100 {
				q.Add(fmt.Sprintf("a/%d", i))
			}
			for i := range 100 {
				wantNext(t, q, fmt.Sprintf("a/%d", i))
			}
		})
	})
}
