// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package queue_test

import (
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
	"github.com/rollcall-dev/rollcall/pkg/mc/queue"
	mcreconcile "github.com/rollcall-dev/rollcall/pkg/mc/reconcile"
)

func configMap(cluster multicluster.ClusterName, name string) mcreconcile.Request {
	return mcreconcile.Request{
		ClusterName: cluster,
		Request:     reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "default", Name: name}},
	}
}

// serve processes all requests that are due, as a worker does.
func serve(q *queue.Queue[mcreconcile.Request]) {
	for q.Len() > 0 {
		req, _ := q.Get()
		fmt.Println(req)
		q.Done(req)
	}
}

func Example() {
	q := queue.New("configmaps", queue.Options[mcreconcile.Request]{
		ClusterOf: mcreconcile.Request.Cluster,
	})
	defer q.ShutDown()

	q.Add(configMap("eu", "a"))
	q.Add(configMap("eu", "b"))
	q.Add(configMap("eu", "c"))
	q.Add(configMap("us", "a"))
	serve(q)
	// Output:
	// cluster://eu/default/a
	// cluster://us/default/a
	// cluster://eu/default/b
	// cluster://eu/default/c
}

// The queue of a controller of controller-runtime. One worker is left for other
// clusters if all requests of a cluster hang.
func ExampleNew() {
	const workers = 10
	_ = controller.TypedOptions[mcreconcile.Request]{
		MaxConcurrentReconciles: workers,
		NewQueue: func(name string, limiter workqueue.TypedRateLimiter[mcreconcile.Request]) workqueue.TypedRateLimitingInterface[mcreconcile.Request] {
			return queue.New(name, queue.Options[mcreconcile.Request]{
				RateLimiter:   limiter,
				ClusterOf:     mcreconcile.Request.Cluster,
				MaxPerCluster: workers - 1,
			})
		},
	}
}

func ExampleQueue_Pause() {
	q := queue.New("configmaps", queue.Options[mcreconcile.Request]{
		ClusterOf: mcreconcile.Request.Cluster,
	})
	defer q.ShutDown()

	q.Pause("eu", "unreachable")
	q.Add(configMap("eu", "a"))
	q.Add(configMap("eu", "a")) // is already queued
	q.Add(configMap("us", "a"))
	req, _ := q.Get()
	q.Done(req)
	fmt.Println("served", req)
	fmt.Println("waiting for eu:", q.Depth("eu").Waiting)

	q.Resume("eu", "unreachable")
	serve(q)
	// Output:
	// served cluster://us/default/a
	// waiting for eu: 1
	// cluster://eu/default/a
}

func ExampleQueue_Drop() {
	q := queue.New("configmaps", queue.Options[mcreconcile.Request]{
		ClusterOf: mcreconcile.Request.Cluster,
	})
	defer q.ShutDown()

	q.Add(configMap("eu", "a"))
	q.Add(configMap("eu", "b"))
	req, _ := q.Get()
	q.Drop("eu")
	fmt.Println("dropped while being processed:", q.Dropped(req))
	q.AddRateLimited(req) // the retry of the failed reconcile is ignored
	q.Done(req)
	fmt.Println("requests left:", q.Len())
	// Output:
	// dropped while being processed: true
	// requests left: 0
}
