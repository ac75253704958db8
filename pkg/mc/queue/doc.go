// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Package queue provides the work queue of a multi-cluster controller. One
// queue holds the requests of all clusters and is fair to them:
//
//   - Clusters are served round-robin. A cluster with ten thousand requests
//     delays a request of another cluster by one request, not by ten thousand.
//   - Busy clusters get equal amounts of the workers' time. A cluster whose
//     requests take 10 s does not slow down one whose requests take 10 ms.
//
// A [Queue] is a controller-runtime priority queue
// (sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue) and can be used
// with controller-runtime's own controller:
//
//	options.NewQueue = func(name string, limiter workqueue.TypedRateLimiter[request]) workqueue.TypedRateLimitingInterface[request] {
//		return queue.New(name, queue.Options[request]{
//			RateLimiter:   limiter,
//			ClusterOf:     request.Cluster,
//			MaxPerCluster: options.MaxConcurrentReconciles - 1,
//		})
//	}
//
// Controllers of pkg/mc/controller use it by default. FairQueue of that package
// sets its options.
//
// # Same as controller-runtime's queue
//
// A request is queued once, however often it is added, and only one worker has
// it at a time. If it is added while a worker has it, it is served again after
// Done. The highest priority and the earliest time of all its adds apply. A
// request whose priority is raised goes to the end of its new priority. Metrics
// have the same names, labels and meaning and are the same series.
//
// # In addition
//
//   - Order: higher priorities first, whatever their cluster. Within a priority,
//     the cluster that has used less worker time; with about equal times, the
//     one that was served least recently. Within a cluster, the oldest request.
//   - [Options].MaxPerCluster limits how many workers one cluster may have at a
//     time. At the limit its requests wait, and those of other clusters pass.
//   - [Queue.Pause] keeps a cluster's requests in the queue, where they are
//     still deduplicated but use no worker, until [Queue.Resume].
//   - [Queue.Drop] removes the requests of a cluster that has been removed.
//   - [Queue.Depth] returns what is queued for one cluster.
//
// The local cluster, whose name is "", is treated like any other cluster.
//
// # Worker time
//
// The worker time of a request runs from Get to Done. Each cluster may use all
// workers, up to MaxPerCluster, while no other cluster has a request that is
// due. A worker keeps its request until Done, so clusters that become busy later
// wait for a worker to be done.
//
//   - Times that differ by less than 50 ms count as equal.
//   - A cluster that has used more time than others waits until they have caught
//     up, but never for more than 30 s of their worker time.
//   - A cluster saves up no time while it is idle, and at most 500 ms while it
//     is paused, at its limit, or busy with requests of a higher priority.
//   - Each priority is accounted for separately.
//
// docs/design/queue.md of the repository describes the algorithm.
//
// # Requeues after Drop
//
// Drop cannot take back a request that a worker has. The reconcile of that
// request often fails, because its cluster is gone, and asks for a retry. If the
// cluster is added again in the meantime, its sources may add the same request.
// The queue distinguishes the two by how a request is added. For a request that
// was handed out before Drop, until its Done:
//
//   - Rate-limited adds and adds with a delay are the requeues of its worker.
//     They are ignored.
//   - Other adds, and all adds with [Queue.AddFromSource], are new. The request
//     is served again after Done, so it never has two workers at once.
//
// A source that adds with a delay or a rate limit should use AddFromSource, as
// the sources of pkg/mc/controller do. Stop the sources of a cluster before
// Drop: what they add afterwards is queued.
package queue
