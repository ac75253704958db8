// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
	"github.com/rollcall-dev/rollcall/pkg/mc/queue"
)

// ClusterStatus is the status of a controller in one cluster.
type ClusterStatus struct {
	// ClusterName is the cluster's name.
	ClusterName multicluster.ClusterName
	// UnsyncedSources is the number of the controller's sources that have not
	// delivered their initial events: all of them on a replica that has not
	// started its sources. Until it is zero, nothing is reconciled.
	UnsyncedSources int
	// LastError is why the last start of a source failed, or what keeps it from
	// syncing, as soon as that is known: about a second after the start for a
	// kind that is missing or forbidden. It is "" once all sources have synced.
	LastError string
	// Queue has the number of requests queued for the cluster. It is zero if
	// Options.NewQueue makes other queues than FairQueue.
	Queue queue.Depth
}

// backlog is the number of requests that wait for a worker.
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
	if c.clusters == nil {
		return queue.Depth{}
	}
	return c.clusters.Depth(name)
}
