// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"time"

	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/rollcall-dev/rollcall/pkg/mc/fleet/internal/worker"
)

// Freshness says which caches of a cluster are behind.
type Freshness struct {
	// Behind has the resources whose caches are behind the cluster, sorted by name.
	// It is empty if all caches are in step.
	Behind []StaleResource
}

// StaleResource is a resource whose cache is behind the cluster, or has not been
// filled yet.
type StaleResource struct {
	// Resource is the name of the resource with its group, such as
	// deployments.apps.
	Resource string
	// Since is when its watch ended. Later changes may be missing in the cache.
	Since time.Time
	// Err is why it cannot be watched, nil if that is not known.
	Err error
}

// FreshnessOf returns which caches of a cluster are behind it, and whether that is
// known: a fleet engaged the cluster, with credentials and the informers of the fleet.
// A cache counts as in step while its watch is open; changes arrive some
// milliseconds later, or not at all while the cluster does not respond. One that has
// no watch for less than a second, as between two watches, counts as in step, too.
// FreshnessOf never blocks and may be called concurrently.
//
// A reconciler that deletes or creates objects because others are missing can use it
// to wait:
//
//	if freshness, ok := fleet.FreshnessOf(cl); ok && len(freshness.Behind) > 0 {
//		return reconcile.Result{RequeueAfter: time.Second}, nil
//	}
func FreshnessOf(cl cluster.Cluster) (Freshness, bool) {
	c, ok := cl.(*worker.Cluster)
	if !ok || c.Connection().Informers() == nil {
		return Freshness{}, false
	}
	var freshness Freshness
	for _, lag := range c.Connection().Informers().Behind() {
		freshness.Behind = append(freshness.Behind, StaleResource{Resource: lag.Resource, Since: lag.Since, Err: lag.Err})
	}
	return freshness, true
}
