// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rollcall-dev/rollcall/pkg/mc/internal/cachereads"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
)

// StaleCacheError is why a write was refused: a cache that was read before it is
// older than ConnectionOptions.MaxCacheAge. A reconciler returns it, wrapped or not:
// the controller then enqueues the request again when the cache is fresh, after
// 10 min at the latest, and counts no error. An error that wraps others as well, as by
// errors.Join, is handled like any other error.
type StaleCacheError struct {
	// Cluster is the cluster whose cache it is.
	Cluster multicluster.ClusterName
	// Resource is the resource with its group, such as deployments.apps, or the Go
	// type if the resource is not known.
	Resource string
	// InStep is when the cache was last known to be in step, zero if that is not
	// known. If it is not older than MaxAge, the cache was filled again after an
	// interruption, less than MaxAge ago.
	InStep time.Time
	// MaxAge is the MaxCacheAge of the fleet.
	MaxAge time.Duration
	// Err is why the cache is not in step, nil if that is not known. It is not
	// unwrapped: it says nothing about the write.
	Err error

	cache *guardedKind
}

var _ cachereads.Waiter = &StaleCacheError{}

// Error implements error.
func (e *StaleCacheError) Error() string {
	text := fmt.Sprintf("the cache of %s in cluster %q, which was read before, ", e.Resource, e.Cluster)
	switch age := time.Since(e.InStep); {
	case e.InStep.IsZero():
		text += "is not known to be in step"
	case age > e.MaxAge:
		text += fmt.Sprintf("was last known to be in step %v ago, MaxCacheAge is %v", age.Round(time.Second), e.MaxAge)
	default:
		text += fmt.Sprintf("was filled again after an interruption less than %v ago (MaxCacheAge)", e.MaxAge)
	}
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text + "; return this error from Reconcile, which is called again when the cache is fresh"
}

// Fresh returns a channel that is closed when the cache is fresh, or the cluster has
// been disengaged. It is nil if the cluster had been disengaged before.
func (e *StaleCacheError) Fresh() <-chan struct{} {
	if e.cache == nil {
		return nil
	}
	return e.cache.fresh(e)
}

// CheckCaches returns a StaleCacheError if a cache that was read with this context
// is too old, in any cluster of any fleet with a MaxCacheAge. The context is that of a
// Reconcile, or made from it. Clients of clusters call it before they create or delete.
// Call it before other actions that follow from what is not in a cache: in the local
// cluster, outside of Kubernetes, or with clients that are made from GetConfig.
func CheckCaches(ctx context.Context) error {
	recorder := cachereads.From(ctx)
	if recorder == nil {
		return errNoRecorder
	}
	return recorder.Check()
}

var errNoRecorder = errors.New("CheckCaches needs the context of a Reconcile, which records the caches that are read")
