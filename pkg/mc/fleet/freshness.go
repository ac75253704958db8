// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/rollcall-dev/rollcall/pkg/mc/fleet/internal/worker"
	"github.com/rollcall-dev/rollcall/pkg/mc/internal/informer"
)

// Freshness is what is known of the cache of a kind in one cluster.
type Freshness struct {
	// InStep is the latest time at which the cache is known to have been in step with
	// the cluster: it had all changes from before. It is zero if the cache has not
	// been filled yet.
	//
	// While the watch is open, it is the later of the last data of the watch (an
	// event, a bookmark, the end of the initial list) and the last response of the
	// cluster to any other request or probe, as these share a connection. On a watch
	// that has sent a bookmark, other responses count for 2 min after its last data
	// only. After a second without data, and after a watch was opened again, there may
	// be a backlog: what the cluster sends then counts after 1 s, when it has been
	// silent for 50 ms, at the latest after 10 s. While the cluster is Degraded or has
	// no open watch, the time stays as it is.
	InStep time.Time

	// WatchOpen reports whether there is a watch whose initial list is complete.
	// Changes arrive some milliseconds later, or not at all while the cluster does
	// not respond: InStep tells.
	WatchOpen bool

	// Err is why there is no watch, nil if that is not known.
	Err error
}

// FreshnessOf returns the freshness of the cache from which objects of that type are
// read, and whether it is known: a fleet engaged the cluster, with credentials and
// the informers of the fleet, and there is an informer of the kind. The caches of Go
// types, of unstructured objects and of metadata are different ones. If several
// caches have the kind, one for each namespace, it is that of the oldest. It never
// blocks and may be called concurrently.
//
// ConnectionOptions.MaxCacheAge refuses writes that follow from caches that are too
// old.
func FreshnessOf(cl cluster.Cluster, obj client.Object) (Freshness, bool) {
	informers := informersOf(cl)
	if informers == nil {
		return Freshness{}, false
	}
	kind, err := informer.KindOf(obj, cl.GetScheme())
	if err != nil {
		return Freshness{}, false
	}
	f, ok := informers.Freshness(kind, 0)
	return Freshness{InStep: f.InStep, WatchOpen: f.WatchOpen, Err: f.Err}, ok
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

// Behind returns which caches of a cluster are behind it, sorted by name, and whether
// that is known: a fleet engaged the cluster, with credentials and the informers of
// the fleet. A cache counts as in step here while its watch is open and the cluster is
// not Degraded. One that has no watch for less than a second, as between two watches,
// counts as in step, too. Behind never blocks and may be called concurrently.
func Behind(cl cluster.Cluster) ([]StaleResource, bool) {
	informers := informersOf(cl)
	if informers == nil {
		return nil, false
	}
	var behind []StaleResource
	for _, lag := range informers.Behind() {
		behind = append(behind, StaleResource{Resource: lag.Resource, Since: lag.Since, Err: lag.Err})
	}
	return behind, true
}

// informersOf returns the informers of a cluster that a fleet engaged, nil if they
// are not known.
func informersOf(cl cluster.Cluster) *informer.Set {
	c, ok := cl.(*worker.Cluster)
	if !ok {
		return nil
	}
	return c.Connection().Informers()
}
