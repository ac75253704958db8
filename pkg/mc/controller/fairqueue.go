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

// FairQueue returns a function for Options.NewQueue that makes fair queues with
// the options.
//
//	mccontroller.Options{
//		MaxConcurrentReconciles: 16,
//		NewQueue:                mccontroller.FairQueue(queue.Options[mcreconcile.Request]{MaxPerCluster: 4}),
//	}
//
// The options have the meaning and the defaults of package queue, so there is no
// cap if MaxPerCluster is 0. Three defaults differ: ClusterOf is the request's
// own Cluster, RateLimiter the controller's, and Log controller-runtime's, with
// the controller's name.
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

// clusterQueue is a queue that knows the cluster of each request, as a FairQueue
// does and what wraps one. With another queue, the controller cannot hold back
// or drop the requests of a cluster, nor cap its workers or report its backlog.
type clusterQueue[request comparable] interface {
	Pause(multicluster.ClusterName, queue.PauseReason)
	Resume(multicluster.ClusterName, queue.PauseReason)
	Drop(multicluster.ClusterName)
	Dropped(request) bool
	Depth(multicluster.ClusterName) queue.Depth
	SetMaxPerCluster(int)
	AddFromSource(priorityqueue.AddOpts, ...request)
}

// Why a cluster is paused.
const (
	syncing   queue.PauseReason = "syncing"   // not all sources have synced
	unhealthy queue.PauseReason = "unhealthy" // the cluster does not answer
)

type addFunc[request comparable] = func(priorityqueue.AddOpts, ...request)

type newQueue[request comparable] = func(string, workqueue.TypedRateLimiter[request]) workqueue.TypedRateLimitingInterface[request]

// captureQueue makes c use the queue that newQueue returns.
func (c *mcController[request]) captureQueue(newQueue newQueue[request]) newQueue[request] {
	return func(name string, rateLimiter workqueue.TypedRateLimiter[request]) workqueue.TypedRateLimitingInterface[request] {
		q := newQueue(name, rateLimiter)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.clusters, _ = q.(clusterQueue[request])
		c.capLocked()
		if c.clusters != nil {
			c.addFromSource = c.clusters.AddFromSource
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

// plainQueue hides from controller-runtime that a queue has priorities.
type plainQueue[request comparable] struct {
	workqueue.TypedRateLimitingInterface[request]
}

// capLocked caps the workers of one cluster while there are others.
func (c *mcController[request]) capLocked() {
	if c.clusters == nil || c.maxPerCluster <= 0 || len(c.sources)+len(c.watchers) == 0 {
		return
	}
	served := len(c.engagements)
	if c.watchesLocal {
		served++
	}
	if capped := served > 1; capped != c.capped {
		c.capped = capped
		limit := 0
		if capped {
			limit = c.maxPerCluster
		}
		c.clusters.SetMaxPerCluster(limit)
	}
}
