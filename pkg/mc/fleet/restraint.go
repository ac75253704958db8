// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/rollcall-dev/rollcall/pkg/inventory"
)

// changesAtOnce is how many changes in a row are followed at once.
const changesAtOnce = 5

// restraint bounds how often a cluster is begun anew because something has
// changed: a few times at once, then less and less, as after failures, until
// there has been peace for the longest backoff. Two profiles' writers, or an
// address behind which two clusters take turns, would otherwise have it engaged
// and listed as fast as it answers. It belongs to the keeper's goroutine.
type restraint struct {
	min, max time.Duration // of the backoff
	backoff  wait.Backoff
	left     int       // of those that are followed at once
	next     time.Time // when the next may be followed
}

// delay returns how long a change that comes now is to wait.
func (r *restraint) delay(now time.Time) time.Duration {
	return max(0, r.next.Sub(now))
}

// follow notes that one is followed now.
func (r *restraint) follow(now time.Time) {
	if now.Sub(r.next) > r.max {
		r.left, r.backoff = changesAtOnce, newBackoff(r.min, r.max)
	}
	r.left--
	r.next = now
	if r.left <= 0 {
		r.next = now.Add(r.backoff.Step())
	}
}

// isHeartbeat tells whether a later version of a profile says the same: times,
// messages and reasons of conditions, and what an API server writes into any
// object, do not count.
func isHeartbeat(before, after *inventory.Profile) bool {
	return before == after ||
		before.UID == after.UID &&
			maps.Equal(before.Labels, after.Labels) &&
			maps.Equal(before.Annotations, after.Annotations) &&
			equality.Semantic.DeepEqual(before.Spec, after.Spec) &&
			before.Status.Version == after.Status.Version &&
			maps.Equal(verdicts(before), verdicts(after)) &&
			maps.Equal(properties(before), properties(after)) &&
			inventory.Fingerprint(before) == inventory.Fingerprint(after)
}

// verdicts returns the status of each condition.
func verdicts(profile *inventory.Profile) map[string]string {
	all := map[string]string{}
	for i := range profile.Status.Conditions {
		all[profile.Status.Conditions[i].Type] = string(profile.Status.Conditions[i].Status)
	}
	return all
}

// properties returns the value of each property.
func properties(profile *inventory.Profile) map[string]string {
	all := map[string]string{}
	for i := range profile.Status.Properties {
		all[profile.Status.Properties[i].Name] = profile.Status.Properties[i].Value
	}
	return all
}
