// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package queue_test

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
	"github.com/rollcall-dev/rollcall/pkg/mc/queue"
)

// run is the processing of one request.
type run struct {
	cluster    multicluster.ClusterName
	start, end time.Time
}

// work processes requests for a duration and returns the runs in order of start.
// Each request takes the time that cost returns for its cluster. It is added
// again while it is processed, so all clusters are always busy.
func work(q *queue.Queue[string], workers int, duration time.Duration, cost func(multicluster.ClusterName) time.Duration) []run {
	end := time.Now().Add(duration)
	runs := make(chan []run)
	for range workers {
		go func() {
			var own []run
			for time.Now().Before(end) {
				item, shutdown := q.Get()
				if shutdown {
					break
				}
				r := run{cluster: clusterOf(item), start: time.Now()}
				time.Sleep(cost(r.cluster))
				r.end = time.Now()
				own = append(own, r)
				q.Add(item)
				q.Done(item)
			}
			runs <- own
		}()
	}
	var all []run
	for range workers {
		all = append(all, <-runs...)
	}
	slices.SortStableFunc(all, func(a, b run) int { return a.start.Compare(b.start) })
	return all
}

// fill adds ten requests for each of n clusters, named 0, 1 and so on.
func fill(q *queue.Queue[string], clusters int) {
	for i := range clusters {
		for j := range 10 {
			q.Add(fmt.Sprintf("%d/%d", i, j))
		}
	}
}

func workerTime(runs []run, cluster multicluster.ClusterName) time.Duration {
	var total time.Duration
	for _, r := range runs {
		if r.cluster == cluster {
			total += r.end.Sub(r.start)
		}
	}
	return total
}

func TestRoundRobinWithShortReconciles(t *testing.T) {
	for _, workers := range []int{1, 3} {
		t.Run(fmt.Sprintf("%d workers", workers), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const clusters = 7
				q := newQueue(t, queue.Options[string]{})
				fill(q, clusters)
				runs := work(q, workers, 3*time.Second, func(multicluster.ClusterName) time.Duration { return 2 * time.Millisecond })
				for i := 0; i+workers <= len(runs); i += workers {
					// These start at the same time, in any order.
					at := runs[i : i+workers]
					slices.SortFunc(at, func(a, b run) int { return cmp.Compare(a.cluster, b.cluster) })
					var want []string
					for j := range workers {
						want = append(want, fmt.Sprint((i+j)%clusters))
					}
					slices.Sort(want)
					for j, r := range at {
						if string(r.cluster) != want[j] {
							t.Fatalf("runs %d to %d are %+v, want clusters %v", i, i+workers, at, want)
						}
					}
				}
			})
		})
	}
}

// TestSlowClusterGetsEqualTime tests that 99 quick clusters get 99% of the time
// of ten workers while one cluster is slow.
func TestSlowClusterGetsEqualTime(t *testing.T) {
	const (
		clusters = 100
		workers  = 10
		duration = 400 * time.Second
		equal    = duration * workers / clusters
		quick    = 40 * time.Millisecond
		slow     = 10 * time.Second
	)
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, queue.Options[string]{MaxPerCluster: workers - 1})
		fill(q, clusters)
		runs := work(q, workers, duration, func(cluster multicluster.ClusterName) time.Duration {
			if cluster == "0" {
				return slow
			}
			return quick
		})
		used := map[multicluster.ClusterName]time.Duration{}
		for _, r := range runs {
			used[r.cluster] += r.end.Sub(r.start)
		}
		var others time.Duration
		for i := 1; i < clusters; i++ {
			cluster := multicluster.ClusterName(fmt.Sprint(i))
			if u := used[cluster]; u < equal*9/10 || u > equal*11/10 {
				t.Errorf("quick cluster %s used %v, want about %v", cluster, u, equal)
			}
			others += used[cluster]
		}
		if part := float64(others) / float64(workers*duration); part < 0.98 {
			t.Errorf("quick clusters got %.3f of the worker time, want 0.99", part)
		}
		// The precision is one request.
		if u := used["0"]; u < equal-slow || u > equal+slow {
			t.Errorf("the slow cluster used %v, want about %v", u, equal)
		}
	})
}

// TestRecoveredClusterIsServedAgain tests the limit of debt: a cluster uses 180 s
// of worker time while the others are idle, and then becomes quick.
func TestRecoveredClusterIsServedAgain(t *testing.T) {
	const (
		clusters = 10
		workers  = 10
		quick    = 20 * time.Millisecond
		slow     = 20 * time.Second
		maxDebt  = 30 * time.Second
	)
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, queue.Options[string]{MaxPerCluster: workers - 1})
		fill(q, 1)
		for range workers - 1 {
			go func() {
				item, _ := q.Get()
				time.Sleep(slow)
				q.Done(item)
			}()
		}
		synctest.Wait()
		wantDepth(t, q, "0", queue.Depth{Waiting: 1, Processing: workers - 1})
		fill(q, clusters)
		q.Pause("0", "not due yet")
		time.Sleep(slow)
		q.Resume("0", "not due yet")

		recovered := time.Now()
		runs := work(q, workers, 2*time.Minute, func(multicluster.ClusterName) time.Duration { return quick })
		first := slices.IndexFunc(runs, func(r run) bool { return r.cluster == "0" })
		if first < 0 {
			t.Fatal("the cluster was not served again")
		}
		// Others use a second of worker time in 0.9 s: nine with ten workers.
		if wait := runs[first].start.Sub(recovered); wait < maxDebt*8/10 || wait > maxDebt {
			t.Errorf("the cluster was served after %v, want %v", wait, maxDebt*9/10)
		}
		since := runs[len(runs)-1].start.Sub(runs[first].start)
		if used, equal := workerTime(runs, "0"), since*workers/clusters; used < equal*9/10 || used > equal*11/10 {
			t.Errorf("the cluster used %v since then, want about %v", used, equal)
		}
	})
}

func TestWorkerTime(t *testing.T) {
	for _, tc := range []struct {
		name string
		run  func(t *testing.T, q *queue.Queue[string])
	}{
		{"the cluster that has used less time goes first", func(t *testing.T, q *queue.Queue[string]) {
			q.AddWithOpts(opts{}, "a/1", "a/2", "b/1", "b/2", "b/3")
			wantNext(t, q, "a/1")
			time.Sleep(time.Second)
			q.Done("a/1")
			wantServed(t, q, "b/1", "b/2", "b/3", "a/2")
		}},
		{"a request counts while a worker has it", func(t *testing.T, q *queue.Queue[string]) {
			q.AddWithOpts(opts{}, "a/1", "a/2", "b/1", "b/2", "b/3")
			wantNext(t, q, "a/1")
			time.Sleep(time.Second)
			wantServed(t, q, "b/1", "b/2", "b/3", "a/2")
		}},
		{"a running request counts one quantum in advance", func(t *testing.T, q *queue.Queue[string]) {
			q.AddWithOpts(opts{}, "a/1", "a/2", "b/1", "b/2", "b/3")
			wantNext(t, q, "a/1")
			wantServed(t, q, "b/1", "b/2")
			wantNext(t, q, "b/3", "a/2")
		}},
		{"differences of less than 50 ms are ignored", func(t *testing.T, q *queue.Queue[string]) {
			q.AddWithOpts(opts{}, "a/1", "a/2", "b/1", "b/2")
			wantNext(t, q, "a/1")
			time.Sleep(49 * time.Millisecond)
			q.Done("a/1")
			wantServed(t, q, "b/1", "a/2", "b/2")
		}},
		{"a cluster may have all workers while no other is busy", func(t *testing.T, q *queue.Queue[string]) {
			q.AddWithOpts(opts{}, "a/1", "a/2", "a/3", "b/1")
			wantNext(t, q, "a/1")
			time.Sleep(time.Hour)
			wantServed(t, q, "b/1")
			wantNext(t, q, "a/2", "a/3")
		}},
		{"delayed requests keep the account", func(t *testing.T, q *queue.Queue[string]) {
			q.AddWithOpts(opts{}, "a/1", "b/1", "b/2", "b/3")
			wantNext(t, q, "a/1")
			time.Sleep(time.Second)
			q.AddRateLimited("a/1")
			q.Done("a/1")
			time.Sleep(time.Second)
			wantServed(t, q, "b/1", "b/2", "b/3", "a/1")
		}},
		{"an idle cluster saves up no time", func(t *testing.T, q *queue.Queue[string]) {
			q.AddWithOpts(opts{}, "a/1", "a/2", "a/3", "a/4")
			q.AddAfter("b/later", time.Hour)
			wantNext(t, q, "a/1")
			time.Sleep(10 * time.Second)
			q.Done("a/1")
			wantServed(t, q, "a/2")
			q.AddWithOpts(opts{}, "b/1", "b/2", "b/3")
			wantServed(t, q, "a/3", "b/1", "a/4", "b/2", "b/3")
		}},
		{"a paused cluster saves up at most 500 ms", func(t *testing.T, q *queue.Queue[string]) {
			q.AddWithOpts(opts{}, "a/1", "a/2", "a/3", "b/1", "b/2", "b/3", "b/4")
			q.Pause("b", "degraded")
			wantNext(t, q, "a/1")
			time.Sleep(10 * time.Second)
			q.Done("a/1")
			wantServed(t, q, "a/2")
			q.Resume("b", "degraded")
			for _, item := range []string{"b/1", "b/2"} {
				wantNext(t, q, item)
				time.Sleep(250 * time.Millisecond)
				q.Done(item)
			}
			wantServed(t, q, "a/3", "b/3", "b/4")
		}},
		{"a pause does not stop the account", func(t *testing.T, q *queue.Queue[string]) {
			q.AddWithOpts(opts{}, "a/1", "a/2", "b/1", "b/2")
			wantNext(t, q, "a/1")
			q.Pause("a", "degraded")
			time.Sleep(time.Second)
			q.Done("a/1")
			q.Resume("a", "degraded")
			wantServed(t, q, "b/1", "b/2", "a/2")
		}},
		{"a request with a worker counts after Drop", func(t *testing.T, q *queue.Queue[string]) {
			q.AddWithOpts(opts{}, "a/1", "a/2", "b/1", "b/2", "b/3")
			wantNext(t, q, "a/1")
			q.Drop("a")
			q.Add("a/3")
			time.Sleep(time.Second)
			wantServed(t, q, "b/1")
			q.Done("a/1")
			wantServed(t, q, "b/2", "b/3", "a/3")
		}},
		{"Drop of a cluster without workers deletes the account", func(t *testing.T, q *queue.Queue[string]) {
			q.AddWithOpts(opts{}, "a/1", "a/2", "b/1", "b/2")
			wantNext(t, q, "a/1")
			time.Sleep(time.Second)
			q.Done("a/1")
			q.Drop("a")
			q.Add("a/3")
			wantServed(t, q, "b/1", "a/3", "b/2")
		}},
		{"each priority has its own account", func(t *testing.T, q *queue.Queue[string]) {
			q.AddWithOpts(opts{Priority: new(1)}, "a/high")
			q.AddWithOpts(opts{}, "a/1", "a/2", "b/1", "b/2")
			get(q).returns(t, got{item: "a/high", priority: 1})
			time.Sleep(time.Second)
			q.Done("a/high")
			wantServed(t, q, "a/1", "b/1", "a/2", "b/2")
		}},
		{"a new cluster starts at the virtual time of its priority", func(t *testing.T, q *queue.Queue[string]) {
			q.AddWithOpts(opts{Priority: new(1)}, "a/high-1", "a/high-2")
			q.AddWithOpts(opts{}, "b/1", "b/2")
			get(q).returns(t, got{item: "a/high-1", priority: 1})
			time.Sleep(time.Hour)
			q.Done("a/high-1")
			get(q).returns(t, got{item: "a/high-2", priority: 1})
			q.AddWithOpts(opts{}, "c/1", "c/2")
			wantServed(t, q, "b/1", "c/1", "b/2", "c/2")
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tc.run(t, newQueue(t, queue.Options[string]{}))
			})
		})
	}
}
