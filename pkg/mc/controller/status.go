// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
	"github.com/rollcall-dev/rollcall/pkg/mc/queue"
)

// ClusterStatus is how a controller does in one cluster.
type ClusterStatus struct {
	// ClusterName is the cluster's name.
	ClusterName multicluster.ClusterName
	// UnsyncedSources is the number of the controller's sources that have not
	// delivered their initial events: all of them before sources are started, on
	// a replica that does not lead. Until it is zero, nothing is reconciled.
	UnsyncedSources int
	// LastError is why a source could not start when that was last tried, or
	// what keeps it from syncing, as soon as that is known: within a second or two
	// of the start for a kind that is missing or forbidden. It is "" once all sources
	// have synced.
	LastError string
	// Queue is what is queued for the cluster. It is zero where a queue of the
	// user's own does not tell.
	Queue queue.Depth
}

// backlog is the number of requests that wait.
func (s ClusterStatus) backlog() int {
	return s.Queue.Waiting + s.Queue.Delayed
}

// StatusReporter is implemented by the controllers of this package.
type StatusReporter interface {
	// ClusterStatus returns the status of each cluster that the controller is
	// engaged with, in no order. It may be called from any goroutine.
	ClusterStatus() []ClusterStatus
}

// ClusterStatus implements StatusReporter.
func (c *mcController[request]) ClusterStatus() []ClusterStatus {
	c.mu.RLock()
	defer c.mu.RUnlock()
	all := make([]ClusterStatus, 0, len(c.engagements))
	for name, e := range c.engagements {
		unsynced := len(e.unsynced)
		if c.queue == nil {
			unsynced = len(c.sources)
		}
		all = append(all, ClusterStatus{
			ClusterName: name, UnsyncedSources: unsynced, LastError: e.lastErrorLocked(), Queue: c.depthLocked(name),
		})
	}
	return all
}

func (c *mcController[request]) depthLocked(name multicluster.ClusterName) queue.Depth {
	depths, ok := c.clusters.(depthQueue)
	if !ok {
		return queue.Depth{}
	}
	return depths.Depth(name)
}

// depthQueue is what a queue must have for the controller to tell what is
// queued for a cluster.
type depthQueue interface {
	Depth(multicluster.ClusterName) queue.Depth
}
