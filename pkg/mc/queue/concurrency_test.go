// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package queue_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
	"github.com/rollcall-dev/rollcall/pkg/mc/queue"
)

// TestConcurrentUse calls all methods concurrently. At any time no request has
// two workers and no cluster exceeds its limit. In the end all requests have been
// served and no state remains.
func TestConcurrentUse(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed: %d", seed)
	synctest.Test(t, func(t *testing.T) {
		metrics := newFakeMetrics()
		q := newQueue(t, queue.Options[string]{
			MaxPerCluster:  testLimit,
			MetricProvider: fakePriorityMetrics{metrics},
		})
		workers := startCheckedWorkers(t, q, seed)
		callConcurrently(q, seed)

		time.Sleep(time.Hour) // until every delay and backoff has ended
		synctest.Wait()
		wantLen(t, q, 0)
		wantKnownClusters(t, q, 0)
		for name, depth := range metrics.snapshot() {
			if strings.HasPrefix(name, "depth") {
				t.Errorf("got metric %s = %v of an empty queue", name, depth)
			}
		}
		q.ShutDown()
		workers.Wait()
	})
}

const (
	testClusters = 5
	testLimit    = 3
)

// startCheckedWorkers starts workers that check the requests they get. One
// request in four fails.
func startCheckedWorkers(t *testing.T, q *queue.Queue[string], seed uint64) *sync.WaitGroup {
	var busy sync.Map // requests that a worker has
	var perCluster [testClusters]atomic.Int64
	var workers sync.WaitGroup
	for i := range 16 {
		workers.Go(func() {
			r := rand.New(rand.NewPCG(seed, uint64(i)))
			for {
				item, shutdown := q.Get()
				if shutdown {
					return
				}
				if _, twice := busy.LoadOrStore(item, true); twice {
					t.Errorf("%s has two workers", item)
				}
				cluster := &perCluster[item[0]-'0']
				if n := cluster.Add(1); n > testLimit {
					t.Errorf("cluster %c has %d workers, want %d at most", item[0], n, testLimit)
				}
				if r.IntN(4) == 0 {
					q.AddRateLimited(item)
				} else {
					q.Forget(item)
				}
				cluster.Add(-1)
				busy.Delete(item)
				q.Done(item)
			}
		})
	}
	return &workers
}

// callConcurrently adds, pauses, resumes and drops, and returns when all calls
// have returned.
func callConcurrently(q *queue.Queue[string], seed uint64) {
	var users sync.WaitGroup
	use := func(stream uint64, call func(*rand.Rand, multicluster.ClusterName)) {
		users.Go(func() {
			r := rand.New(rand.NewPCG(seed, stream))
			for i := range 1000 {
				call(r, multicluster.ClusterName(strconv.Itoa(r.IntN(testClusters))))
				if i%50 == 0 {
					time.Sleep(time.Millisecond) // so that some delays end
				}
			}
		})
	}
	for stream := range uint64(4) {
		use(100+stream, func(r *rand.Rand, cluster multicluster.ClusterName) {
			q.AddWithOpts(opts{
				Priority: new(r.IntN(3)),
				After:    time.Duration(r.IntN(2)*r.IntN(1000)) * time.Microsecond,
			}, fmt.Sprintf("%s/%d", cluster, r.IntN(20)))
			q.Len()
		})
	}
	for stream, reason := range []queue.PauseReason{"syncing", "degraded"} {
		use(200+uint64(stream), func(_ *rand.Rand, cluster multicluster.ClusterName) {
			q.Pause(cluster, reason)
			q.Depth(cluster)
			q.Resume(cluster, reason)
		})
	}
	use(300, func(_ *rand.Rand, cluster multicluster.ClusterName) {
		q.Drop(cluster)
	})
	users.Wait()
}

// TestDropWhileBusy drops a cluster while workers are busy. No request that was
// added before may be handed out after Drop has returned.
func TestDropWhileBusy(t *testing.T) {
	q := newQueue(t, queue.Options[string]{})
	var dropped atomic.Bool
	taken := make(chan string)
	var workers sync.WaitGroup
	for range 4 {
		workers.Go(func() {
			for {
				droppedBefore := dropped.Load()
				item, shutdown := q.Get()
				if shutdown {
					return
				}
				if droppedBefore && clusterOf(item) == "gone" {
					t.Errorf("%s was handed out after Drop", item)
				}
				select {
				case taken <- item:
				default:
				}
				q.AddRateLimited(item) // as after a reconcile error
				q.Done(item)
			}
		})
	}
	for i := range 1000 {
		q.Add(fmt.Sprintf("gone/%d", i))
	}
	<-taken
	q.Drop("gone")
	dropped.Store(true)
	q.Add("other/1")
	for clusterOf(<-taken) != "other" {
	}
	q.ShutDown()
	workers.Wait()
}

// TestShutDownWhileBusy shuts a queue down while workers are busy.
func TestShutDownWhileBusy(t *testing.T) {
	for range 50 {
		q := queue.New("", queue.Options[string]{ClusterOf: clusterOf, MaxPerCluster: 2})
		q.Pause("paused", "syncing")
		q.Add("paused/1")
		var workers sync.WaitGroup
		started := make(chan struct{}, 8)
		for i := range 8 {
			workers.Go(func() {
				for round := 0; ; round++ {
					q.AddWithOpts(opts{Priority: new(round % 5)}, fmt.Sprintf("%d/%d", i%3, round%100))
					item, _, shutdown := q.GetWithPriority()
					if round == 0 {
						started <- struct{}{}
					}
					if shutdown {
						return
					}
					q.Done(item)
				}
			})
		}
		<-started
		q.ShutDown()
		workers.Wait()
	}
}
