// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package queue_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/rollcall-dev/rollcall/pkg/mc/queue"
)

// runController runs controller-runtime's controller on a queue, in a synctest
// bubble. It returns the queue and a function that stops the controller.
func runController(t *testing.T, options controller.TypedOptions[string], maxPerCluster int, do reconcile.TypedFunc[string]) (*queue.Queue[string], func()) {
	t.Helper()
	var q *queue.Queue[string]
	options.SkipNameValidation = new(true)
	options.Reconciler = do
	options.NewQueue = func(name string, limiter workqueue.TypedRateLimiter[string]) workqueue.TypedRateLimitingInterface[string] {
		q = queue.New(name, queue.Options[string]{ClusterOf: clusterOf, MaxPerCluster: maxPerCluster, RateLimiter: limiter})
		return q
	}
	c, err := controller.NewTypedUnmanaged("test", options)
	if err != nil {
		t.Fatal(err)
	}
	err = c.Watch(source.TypedFunc[string](func(context.Context, workqueue.TypedRateLimitingInterface[string]) error {
		return nil
	}))
	if err != nil {
		t.Fatal(err)
	}

	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- c.Start(ctx) }()
	synctest.Wait()
	return q, func() {
		t.Helper()
		cancel()
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
	}
}

// reconciles counts reconciles by request.
type reconciles struct {
	mu    sync.Mutex
	count map[string]int
}

func (r *reconciles) add(request string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.count == nil {
		r.count = map[string]int{}
	}
	r.count[request]++
	return r.count[request]
}

func (r *reconciles) of(request string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.count[request]
}

func TestControllerRetriesAndRequeues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var done reconciles
		q, stop := runController(t, controller.TypedOptions[string]{}, 0,
			func(_ context.Context, request string) (reconcile.Result, error) {
				switch n := done.add(request); {
				case request == "a/fails-twice" && n <= 2:
					return reconcile.Result{}, errors.New("not yet")
				case request == "b/every-minute":
					return reconcile.Result{RequeueAfter: time.Minute}, nil
				}
				return reconcile.Result{}, nil
			})
		q.AddWithOpts(opts{}, "a/fails-twice", "b/every-minute", "once")
		time.Sleep(150 * time.Second)
		for request, want := range map[string]int{"a/fails-twice": 3, "b/every-minute": 3, "once": 1} {
			if n := done.of(request); n != want {
				t.Errorf("%s was reconciled %d times, want %d", request, n, want)
			}
		}
		wantDepth(t, q, "b", queue.Depth{Delayed: 1})
		stop()
	})
}

func TestControllerWithHangingCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var done reconciles
		q, stop := runController(t, controller.TypedOptions[string]{MaxConcurrentReconciles: 4}, 3,
			func(ctx context.Context, request string) (reconcile.Result, error) {
				if clusterOf(request) == "hangs" {
					<-ctx.Done()
				}
				done.add(request)
				return reconcile.Result{}, nil
			})
		for i := range 100 {
			q.Add(fmt.Sprintf("hangs/%d", i))
		}
		q.AddWithOpts(opts{}, "b/1", "b/2", "local")
		wantDepth(t, q, "hangs", queue.Depth{Waiting: 97, Processing: 3})
		for _, request := range []string{"b/1", "b/2", "local"} {
			if done.of(request) != 1 {
				t.Errorf("%s was not reconciled", request)
			}
		}
		stop()
	})
}

func TestControllerIgnoresRequeueAfterDrop(t *testing.T) {
	for _, tc := range []struct {
		name   string
		result reconcile.Result
		err    error
	}{
		{name: "after an error", err: errors.New("the cluster is gone")},
		{name: "after RequeueAfter", result: reconcile.Result{RequeueAfter: time.Second}},
		{name: "after success"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var started reconciles
				proceed := make(chan struct{})
				q, stop := runController(t, controller.TypedOptions[string]{}, 0,
					func(_ context.Context, request string) (reconcile.Result, error) {
						if started.add(request) == 1 {
							<-proceed
							return tc.result, tc.err
						}
						return reconcile.Result{}, nil
					})
				q.Add("a/1")
				synctest.Wait()
				q.Drop("a")
				close(proceed)
				time.Sleep(time.Hour)
				wantKnownClusters(t, q, 0)
				if n := started.of("a/1"); n != 1 {
					t.Fatalf("reconciled %d times, want once", n)
				}

				q.Add("a/1")
				synctest.Wait()
				if n := started.of("a/1"); n != 2 {
					t.Fatalf("reconciled %d times after the second add, want twice", n)
				}
				stop()
			})
		})
	}
}

func TestControllerStopsWithPausedCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, stop := runController(t, controller.TypedOptions[string]{MaxConcurrentReconciles: 2}, 1,
			func(context.Context, string) (reconcile.Result, error) { return reconcile.Result{}, nil })
		q.Pause("a", "degraded")
		q.AddWithOpts(opts{}, "a/1", "a/2")
		q.AddAfter("a/3", time.Hour)
		stop()
	})
}
