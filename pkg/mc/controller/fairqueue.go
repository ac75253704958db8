// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
	"github.com/rollcall-dev/rollcall/pkg/mc/queue"
	mcreconcile "github.com/rollcall-dev/rollcall/pkg/mc/reconcile"
)

// FairQueue is for Options.NewQueue: it makes fair queues with other options
// than the default's.
//
//	mccontroller.Options{
//		MaxConcurrentReconciles: 16,
//		NewQueue:                mccontroller.FairQueue(queue.Options[mcreconcile.Request]{MaxPerCluster: 4}),
//	}
//
// The options mean what they do there, so MaxPerCluster holds for whatever
// clusters there are, and there is no cap if it is 0. These have other
// defaults: ClusterOf is the request's own Cluster, RateLimiter the
// controller's, and Log controller-runtime's, with the controller's name.
func FairQueue[request mcreconcile.ClusterAware[request]](options queue.Options[request]) func(name string, rateLimiter workqueue.TypedRateLimiter[request]) workqueue.TypedRateLimitingInterface[request] {
	return func(name string, rateLimiter workqueue.TypedRateLimiter[request]) workqueue.TypedRateLimitingInterface[request] {
		options := options
		if options.ClusterOf == nil {
			options.ClusterOf = request.Cluster
		}
		if options.RateLimiter == nil {
			options.RateLimiter = rateLimiter
		}
		if options.Log.GetSink() == nil {
			options.Log = log.Log.WithValues("controller", name)
		}
		return queue.New(name, options)
	}
}

// clusterQueue is what a queue must have for the controller to keep a
// cluster's requests back and to drop them.
type clusterQueue interface {
	Pause(multicluster.ClusterName, queue.PauseReason)
	Resume(multicluster.ClusterName, queue.PauseReason)
	Drop(multicluster.ClusterName)
}

// Why a cluster's requests are held.
const (
	syncing   queue.PauseReason = "syncing"   // not all sources have synced
	unhealthy queue.PauseReason = "unhealthy" // it does not answer
)

// cappedQueue is what a queue must have for the controller to bound how many
// workers one cluster may hold.
type cappedQueue interface {
	SetMaxPerCluster(int)
}

// droppingQueue is what a queue must have for the controller not to begin with
// a request whose cluster has left since it was handed out.
type droppingQueue[request comparable] interface {
	Dropped(request) bool
}

// sourceQueue is what a queue must have to tell what sources add with a delay
// from what workers requeue.
type sourceQueue[request comparable] interface {
	AddFromSource(priorityqueue.AddOpts, ...request)
}

type addFunc[request comparable] = func(priorityqueue.AddOpts, ...request)

type newQueue[request comparable] = func(string, workqueue.TypedRateLimiter[request]) workqueue.TypedRateLimitingInterface[request]

// captureQueue remembers the queue that the controller is given.
func (c *mcController[request]) captureQueue(newQueue newQueue[request]) newQueue[request] {
	return func(name string, rateLimiter workqueue.TypedRateLimiter[request]) workqueue.TypedRateLimitingInterface[request] {
		q := newQueue(name, rateLimiter)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.clusters, _ = q.(clusterQueue)
		c.capLocked()
		if sources, ok := q.(sourceQueue[request]); ok {
			c.addFromSource = sources.AddFromSource
		}
		if c.withPriorities {
			return q
		}
		if add := c.addFromSource; add != nil {
			c.addFromSource = func(opts priorityqueue.AddOpts, items ...request) {
				opts.Priority = nil
				add(opts, items...)
			}
		}
		return plainQueue[request]{q}
	}
}

// plainQueue hides from controller-runtime that a queue knows priorities.
type plainQueue[request comparable] struct {
	workqueue.TypedRateLimitingInterface[request]
}

// capLocked has no cluster hold all workers, where there may be others.
func (c *mcController[request]) capLocked() {
	if c.maxPerCluster <= 0 || len(c.sources)+len(c.watchers) == 0 {
		return
	}
	if q, ok := c.clusters.(cappedQueue); ok {
		q.SetMaxPerCluster(c.maxPerCluster)
	}
}
