// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"

	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
)

// Options are the options of a Queue. The zero value gives a queue that treats
// all requests as the local cluster's, with no cap.
type Options[request comparable] struct {
	// ClusterOf returns the cluster that a request belongs to. It must give
	// the same answer for the same request every time, and is called from any
	// goroutine. Default: every request belongs to the local cluster.
	ClusterOf func(request) multicluster.ClusterName

	// MaxPerCluster bounds how many requests of one cluster may be with
	// workers at the same time, those handed out before a Drop included. With
	// one less than a controller has workers, a cluster that hangs leaves one
	// for the others that come. How workers are shared below the bound is not
	// an option: see the package comment on worker time. SetMaxPerCluster
	// changes it later. Default, and for anything below 1: no bound.
	MaxPerCluster int

	// RateLimiter says how long a rate-limited add waits. Default: each
	// request has a backoff of its own, from 5 ms, doubled each time, to
	// 1000 s.
	RateLimiter workqueue.TypedRateLimiter[request]

	// MetricProvider makes the metrics of a queue that has a name. One that is
	// a MetricsProviderWithPriority gets the depth by priority. Metrics are
	// updated under the queue's lock, so they must not call the queue.
	// Default: the workqueue metrics in controller-runtime's registry.
	MetricProvider workqueue.MetricsProvider

	// Log gets the queue's state every ten seconds at verbosity 5, and what
	// Hold, Resume and Drop do at verbosity 4. Default: no log.
	Log logr.Logger

	// Clock is what the queue takes time from, worker time included. Default:
	// the real clock, which in a testing/synctest bubble is the bubble's.
	Clock clock.WithTicker
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
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
}
