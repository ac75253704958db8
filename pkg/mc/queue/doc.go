// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Package queue holds the work queue of a multi-cluster controller. It serves
// clusters in turn, so that one with ten thousand requests delays another's
// single request by one request and not by ten thousand, and has them share the
// workers' time, so that one with slow requests does not take it from others.
//
// A [Queue] is a controller-runtime priority queue
// (sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue), and
// controller-runtime's own controller runs on it:
//
//	options.NewQueue = func(name string, limiter workqueue.TypedRateLimiter[request]) workqueue.TypedRateLimitingInterface[request] {
//		return queue.New(name, queue.Options[request]{
//			RateLimiter:   limiter,
//			ClusterOf:     request.Cluster,
//			MaxPerCluster: options.MaxConcurrentReconciles - 1,
//		})
//	}
//
// Controllers of pkg/mc/controller have one without that, and set its options
// with FairQueue of that package.
//
// # What it shares with controller-runtime's queue
//
// A request is queued once, however often it is added, and is never with two
// workers at a time: added again while a worker has it, it is served again
// after Done. The highest priority and the earliest time asked for prevail. A
// request whose priority is raised goes to the end of its new priority.
// Metrics have the same names, labels and meaning, and are the same series.
//
// # What it adds
//
//   - Turns. A higher priority goes first, whichever cluster it belongs to.
//     Within a priority the cluster goes next that has used less worker time,
//     and of those that have used about the same, the one that was served, or
//     began to wait, longest ago. Within a cluster the order is that of
//     arrival.
//   - A cap. [Options].MaxPerCluster bounds how many workers a cluster may
//     hold at a time. While it holds that many, its requests wait and those
//     of other clusters pass them.
//   - Holds. [Queue.Hold] keeps a cluster's requests in the queue, where they
//     still gather and deduplicate but take no worker, until [Queue.Resume].
//   - [Queue.Drop], for when a cluster leaves, and [Queue.Dropped], for the
//     worker that has a request of it.
//   - [Queue.Depth], the state of one cluster.
//
// The local cluster, named "", is a cluster like any other.
//
// # Worker time
//
// Worker time is what passes between Get and Done, added up over the requests
// of a cluster. While clusters have work all the time, each gets an equal part
// of it: one whose requests take 10 s is served once while another is served a
// thousand times at 10 ms. No worker is idle for that. A cluster may have all
// workers, up to its cap, as long as no other has a request that is due; but a
// worker that has a request keeps it until Done, so others that come then have
// to wait for it.
//
//   - Requests count from Get on, not only when they are Done.
//   - Time is compared in steps of 50 ms. Within a step clusters are strictly
//     in turn, so those with short requests always are. A request that is with
//     a worker counts as one step more than its time so far: until it shows how
//     long a cluster's requests take, it has no more workers than others have.
//   - A cluster waits for others to make up for 30 s of its worker time at
//     most, counted from when its last request is Done. Of 100 clusters that
//     keep 10 workers busy, one that has mended is back after five minutes at
//     the latest, and sooner if others have less to do.
//   - Nothing is saved up while a cluster has nothing due, and half a second at
//     most while it is held, at its cap, or has requests of a higher priority.
//   - Each priority has accounts of its own. One is kept as long as the cluster
//     has a request of that priority in the queue, also a delayed one, or with
//     a worker.
//
// # When a cluster leaves
//
// Drop removes what a cluster has in the queue. It cannot take back a request
// that a worker is busy with, and that worker will often fail (its cluster is
// gone) and ask for a retry. When the cluster comes back meanwhile, its
// sources add requests that may have the very same key. The queue tells the
// two apart by how they are added, because a controller requeues only with a
// delay or rate limited, and sources announce objects by plain adds. For a
// request that was handed out before Drop, and until its Done:
//
//   - adds with a delay and rate-limited adds are taken for the worker's own
//     requeue, and ignored;
//   - plain adds, and all that are made with [Queue.AddFromSource], are taken
//     for the cluster's return, and kept. The request is served after Done of
//     the old run, so that it never runs twice at once.
//
// Sources whose adds may be delayed, or rate limited, therefore use
// AddFromSource, as those of pkg/mc/controller do. For any other request of the
// cluster every add counts as new at once. So stop a cluster's sources before
// Drop: what they add later would be queued.
//
// # Implementation
//
// Every operation is O(log n), save Drop, which is so for each request it
// removes, SetMaxPerCluster, for each cluster, and Get, which may move some
// clusters whose requests are with workers: each once for every 50 ms of its
// worker time. One goroutine per queue promotes delayed requests and updates
// metrics. Nothing is kept for a cluster that has no requests, no holds and no
// worker.
package queue
