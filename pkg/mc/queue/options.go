// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/util/workqueue"

	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
)

// Options are the options of a Queue. With the zero value, all requests belong
// to the local cluster and there is no limit.
type Options[request comparable] struct {
	// ClusterOf returns the cluster that a request belongs to. It must return
	// the same cluster for the same request every time, and is called from any
	// goroutine. Default: every request belongs to the local cluster.
	ClusterOf func(request) multicluster.ClusterName

	// MaxPerCluster limits how many workers one cluster may have at a time,
	// including those that were busy with it before Drop. A value of one less
	// than the number of workers leaves a worker for other clusters if the
	// requests of one cluster hang. SetMaxPerCluster changes the limit.
	// Default, and for values below 1: no limit.
	MaxPerCluster int

	// RateLimiter returns the delay of a rate-limited add. Default: an
	// exponential backoff for each request, from 5 ms to 1000 s.
	RateLimiter workqueue.TypedRateLimiter[request]

	// MetricProvider creates the metrics of a queue that has a name. It is
	// called with the queue locked and must not use the queue. Default: the
	// workqueue metrics in controller-runtime's registry, which have the depth
	// by priority.
	MetricProvider workqueue.MetricsProvider

	// Log receives the state of the queue every ten seconds at verbosity 5, and
	// calls of Pause, Resume and Drop at verbosity 4. Default: no log.
	Log logr.Logger
}

const (
	defaultBaseDelay = 5 * time.Millisecond
	defaultMaxDelay  = 1000 * time.Second
)

func (o *Options[request]) setDefaults() {
	if o.ClusterOf == nil {
		o.ClusterOf = func(request) multicluster.ClusterName { return "" }
	}
	if o.RateLimiter == nil {
		o.RateLimiter = workqueue.NewTypedItemExponentialFailureRateLimiter[request](defaultBaseDelay, defaultMaxDelay)
	}
}
