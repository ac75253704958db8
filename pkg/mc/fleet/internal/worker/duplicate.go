// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"errors"
	"fmt"
	"slices"

	"github.com/go-logr/logr"

	"github.com/rollcall-dev/rollcall/pkg/inventory"
	"github.com/rollcall-dev/rollcall/pkg/mc/fleet/internal/identity"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
)

// duplicateError means that another worker has the cluster.
type duplicateError struct{ of multicluster.ClusterName }

// Error implements error.
func (e *duplicateError) Error() string {
	return fmt.Sprintf("the cluster has the name %q", e.of)
}

// errOtherCluster means that another cluster responds than the one that has the name.
var errOtherCluster = errors.New("another profile of another cluster has the same cluster name and member ID or ClusterID")

// claim notes that the cluster has responded. The error is that the worker must not
// engage it.
func (w *Worker) claim(profile *inventory.Profile, id identity.Identity) error {
	holder, err := w.Claims.claim(w, profile, id.UID)
	if err != nil {
		return err
	}
	if holder != nil {
		return &duplicateError{of: holder.name}
	}
	if w.standby {
		return withReason(DuplicateName, errOtherCluster)
	}
	return nil
}

// giveWay ends what the worker does with its cluster, which the other one has now.
func (w *Worker) giveWay(other *Worker) {
	if a := w.attempt.Load(); a != nil {
		a.cancel(&duplicateError{of: other.name})
	}
	w.wake()
}

// setDuplicate shows that another worker has the cluster, or will have it.
func (w *Worker) setDuplicate(of multicluster.ClusterName) {
	err := &duplicateError{of: of}
	if status := w.Status(); status.State == Duplicate && status.LastError == err.Error() {
		return
	}
	w.setStatus(Duplicate, DuplicateCluster, err.Error(), func(log logr.Logger) {
		log.Info("Profile is a duplicate, its cluster has another name", "profile", inventory.KeyOf(w.Own()), "other", of)
	})
}

// standBy waits once for a change if another worker has the cluster, and reports
// whether that was so. It waits for MaxBackoff at most, since a UID that could not be
// read may be readable then.
func (w *Worker) standBy() bool {
	if w.recheck.Swap(false) {
		w.Claims.verifyAgain(w)
	}
	holder := w.Claims.standsBy(w)
	if holder == nil {
		return false
	}
	w.Claims.use(w, nil)
	w.setDuplicate(holder.name)
	timer := w.Clock.NewTimer(w.MaxBackoff)
	defer timer.Stop()
	select {
	case <-w.ctx.Done():
	case <-w.changed:
	case <-timer.C():
		w.Claims.verifyUnknown(w)
	}
	return true
}

// tryNext chooses another profile of the cluster that has not been tried since the
// last success, and reports whether there is one. If there is none, the next call
// tries all again.
func (w *Worker) tryNext() bool {
	w.tried = append(w.tried, w.source.Load())
	for _, source := range append([]*Worker{nil}, w.Claims.alternates(w)...) {
		if !slices.Contains(w.tried, source) && w.Claims.use(w, source) {
			return true
		}
	}
	w.tried = nil
	return false
}

// accesses returns the access of each profile that may be used in the place of the
// worker's own.
func (w *Worker) accesses() map[*Worker]string {
	keys := map[*Worker]string{}
	for _, other := range w.Claims.alternates(w) {
		keys[other] = accessKey(other.own.Load())
	}
	return keys
}

// useChanged chooses a profile that was added, or whose access has changed since, and
// reports whether there is one.
func (w *Worker) useChanged(before map[*Worker]string) bool {
	for _, other := range w.Claims.alternates(w) {
		if key := accessKey(other.own.Load()); before[other] != key && w.Claims.use(w, other) {
			before[other] = key
			return true
		}
	}
	return false
}

// Alternates returns the latest versions of the other profiles of the worker's
// cluster that may be used in the place of its own.
func (w *Worker) Alternates() []*inventory.Profile {
	var profiles []*inventory.Profile
	source := w.source.Load()
	for _, other := range append([]*Worker{w}, w.Claims.alternates(w)...) {
		if other != source && (other != w || source != nil) {
			profiles = append(profiles, other.own.Load())
		}
	}
	return profiles
}

// Successor returns a worker whose profile can take the place of this one's, nil if
// there is none.
func (w *Worker) Successor() *Worker {
	if source := w.source.Load(); source != nil {
		return source
	}
	if alternates := w.Claims.alternates(w); len(alternates) > 0 {
		return alternates[0]
	}
	return nil
}

// Conflict describes profiles of other clusters that say that they are of this one,
// or is "".
func (w *Worker) Conflict() string { return w.Claims.conflict(w) }

// DuplicateOf returns the name of the cluster if another worker has it.
func (w *Worker) DuplicateOf() (multicluster.ClusterName, bool) {
	holder := w.Claims.holderOf(w)
	if holder == nil {
		return "", false
	}
	return holder.name, true
}
