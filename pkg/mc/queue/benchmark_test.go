// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package queue_test

import (
	"fmt"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"

	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
	"github.com/rollcall-dev/rollcall/pkg/mc/queue"
)

// benchmarkRequest has the shape of a multi-cluster reconcile request.
type benchmarkRequest struct {
	cluster         multicluster.ClusterName
	namespace, name string
}

func benchmarkRequests(clusters int) []benchmarkRequest {
	requests := make([]benchmarkRequest, 10_000)
	for i := range requests {
		requests[i] = benchmarkRequest{
			cluster:   multicluster.ClusterName("cluster-" + strconv.Itoa(i%clusters)),
			namespace: "default",
			name:      "object-" + strconv.Itoa(i),
		}
	}
	return requests
}

// forBothQueues runs a benchmark on controller-runtime's queue and on this one.
func forBothQueues(b *testing.B, run func(*testing.B, priorityqueue.PriorityQueue[benchmarkRequest], []benchmarkRequest)) {
	for _, clusters := range []int{1, 100} {
		requests := benchmarkRequests(clusters)
		b.Run(fmt.Sprintf("queue=controller-runtime/clusters=%d", clusters), func(b *testing.B) {
			run(b, priorityqueue.New[benchmarkRequest](""), requests)
		})
		b.Run(fmt.Sprintf("queue=rollcall/clusters=%d", clusters), func(b *testing.B) {
			run(b, queue.New("", queue.Options[benchmarkRequest]{
				ClusterOf: func(r benchmarkRequest) multicluster.ClusterName { return r.cluster },
			}), requests)
		})
	}
}

// BenchmarkAddGetDone passes a thousand requests through the queue in one
// goroutine.
func BenchmarkAddGetDone(b *testing.B) {
	forBothQueues(b, func(b *testing.B, q priorityqueue.PriorityQueue[benchmarkRequest], requests []benchmarkRequest) {
		defer q.ShutDown()
		b.ReportAllocs()
		for b.Loop() {
			for _, r := range requests[:1000] {
				q.Add(r)
			}
			for range 1000 {
				r, _ := q.Get()
				q.Done(r)
			}
		}
	})
}

// BenchmarkAddContended adds requests on all processors while 64 workers get
// them. An operation is one Add, and the run ends when the queue is empty. An Add
// of a queued request costs less, so compare served/op too.
func BenchmarkAddContended(b *testing.B) {
	forBothQueues(b, func(b *testing.B, q priorityqueue.PriorityQueue[benchmarkRequest], requests []benchmarkRequest) {
		var workers sync.WaitGroup
		var served atomic.Int64
		for range 64 {
			workers.Go(func() {
				for {
					r, shutdown := q.Get()
					if shutdown {
						return
					}
					q.Done(r)
					served.Add(1)
				}
			})
		}
		var next atomic.Int64
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				q.Add(requests[int(next.Add(1))%len(requests)])
			}
		})
		for q.Len() > 0 {
			runtime.Gosched()
		}
		b.StopTimer()
		q.ShutDown()
		workers.Wait()
		b.ReportMetric(float64(served.Load())/float64(b.N), "served/op")
	})
}

// BenchmarkServeContended has 64 workers on a queue of a thousand requests. Each
// request is added again while it is processed. An operation is one request
// served.
func BenchmarkServeContended(b *testing.B) {
	forBothQueues(b, func(b *testing.B, q priorityqueue.PriorityQueue[benchmarkRequest], requests []benchmarkRequest) {
		for _, r := range requests[:1000] {
			q.Add(r)
		}
		b.ReportAllocs()
		b.ResetTimer()
		var workers sync.WaitGroup
		var served atomic.Int64
		for range 64 {
			workers.Go(func() {
				for served.Add(1) <= int64(b.N) {
					r, _ := q.Get()
					q.Add(r)
					q.Done(r)
				}
			})
		}
		workers.Wait()
		b.StopTimer()
		q.ShutDown()
	})
}
