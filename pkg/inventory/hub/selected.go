// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"cmp"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"github.com/rollcall-dev/rollcall/pkg/inventory"
)

// selected is the set of clusters that a placement selects: those of the current
// decision, and those of earlier ones until their grace ends.
type selected struct {
	placement   *Placement
	slices      map[string]*v1alpha1.PlacementDecision
	listed      bool // the first list is complete
	unavailable bool // decisions cannot be read at the moment

	decision decision
	leaving  map[inventory.Key]time.Time // since when a cluster is no longer in the decision
	logged   string
}

func newSelected(placement *Placement) *selected {
	return &selected{
		placement: placement,
		slices:    map[string]*v1alpha1.PlacementDecision{},
		leaving:   map[inventory.Key]time.Time{},
	}
}

func (s *selected) has(key inventory.Key) bool {
	_, leaving := s.leaving[key]
	return leaving || s.decision.clusters[key]
}

// setAvailable records whether decisions can be read. Each grace starts again after
// an outage, as changes during it are not known yet.
func (s *selected) setAvailable(available bool, now time.Time) {
	if available && s.unavailable {
		for key := range s.leaving {
			s.leaving[key] = now
		}
	}
	s.unavailable = !available
}

// decide reads the slices again. It returns the clusters that are added.
func (s *selected) decide(now time.Time) (added []inventory.Key) {
	before := s.decision.clusters
	s.decision = decisionOf(s.slices)
	for key := range before {
		if !s.decision.clusters[key] {
			s.leaving[key] = now
		}
	}
	for key := range s.decision.clusters {
		if _, leaving := s.leaving[key]; !leaving && !before[key] {
			added = append(added, key)
		}
		delete(s.leaving, key)
	}
	return added
}

// expire returns the clusters whose grace has ended.
func (s *selected) expire(now time.Time) (removed []inventory.Key) {
	if s.unavailable {
		return nil
	}
	for key, since := range s.leaving {
		if !now.Before(since.Add(s.grace())) {
			delete(s.leaving, key)
			removed = append(removed, key)
		}
	}
	return removed
}

// nextExpiry returns when the next grace ends.
func (s *selected) nextExpiry() (at time.Time, ok bool) {
	if s.unavailable {
		return time.Time{}, false
	}
	for _, since := range s.leaving {
		if end := since.Add(s.grace()); !ok || end.Before(at) {
			at, ok = end, true
		}
	}
	return at, ok
}

func (s *selected) grace() time.Duration {
	grace := cmp.Or(s.placement.Grace, defaultGrace)
	if s.decision.incomplete {
		grace *= incompleteFactor
	}
	return grace
}

// logState logs whether there is a decision, if that has changed.
func (s *selected) logState(log logr.Logger) {
	state := "Placement decision found"
	if len(s.slices) == 0 {
		state = "No placement decision found, removing its clusters unless one appears"
		log = log.WithValues("removedAfter", s.grace().String())
	}
	if state != s.logged {
		s.logged = state
		log.Info(state, "placement", s.placement.String())
	}
}
