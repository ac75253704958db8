// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Package controller provides controllers that reconcile objects of many
// clusters through one queue.
//
// A [Controller] is controller-runtime's own controller with two things added:
// its queue knows clusters (see pkg/mc/queue), and it can be engaged with a
// cluster at any time, before it starts or while it runs. Use the builder to
// make one, or:
//
//	c, err := mccontroller.New("pods", mgr, mccontroller.Options{Reconciler: r})
//	…
//	err = c.MultiClusterWatch(src)
//
// # What it promises
//
//   - Engaging a cluster never blocks. A source that cannot start there, because
//     the API server hangs, forbids the watch or does not serve the kind, is
//     started again with backoff, and [StatusReporter] has the reason. Other
//     clusters are not affected, nor other sources and controllers in this
//     cluster, with one exception: while the API server does not answer
//     discovery, controller-runtime's REST mapper blocks all callers that ask it
//     for a kind of that cluster. The mapper of a fleet's clusters (pkg/mc/fleet)
//     blocks only callers that ask for a kind it has not resolved yet.
//   - No Reconcile is called for a cluster before all of the controller's
//     sources have delivered their initial events for it. Requests that arrive
//     before that wait in the queue and take no worker.
//   - When a cluster is disengaged, its sources stop, its requests are dropped from the
//     queue, no Reconcile of them begins, and the context of one that runs is
//     cancelled.
//   - While a cluster is unhealthy, its requests wait in the queue and take no
//     worker.
//   - Engaging a name again stops what was engaged under it before.
package controller
