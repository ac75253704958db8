// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/rollcall-dev/rollcall/pkg/inventory"
)

const (
	// missingGrace is how long a profile may be missing before that is reported: it
	// may have been written just after its decision.
	missingGrace = 5 * time.Second

	// missingLogInterval is the time between two log lines on missing profiles.
	missingLogInterval = time.Minute

	// maxMissing is how many missing profiles are named.
	maxMissing = 10
)

// PlacementStatus is what a source knows of its placement.
type PlacementStatus struct {
	// Missing is the number of profiles that the decision names and the source has not
	// found: they do not exist, or Options exclude them. Profiles that have been
	// missing for less than 5 s do not count (35 s with Options.Cache).
	Missing int

	// MissingProfiles are the first 10 of them, by namespace and name.
	MissingProfiles []inventory.Key
}

// PlacementStatus returns the status of the placement. It is empty without one, and
// while the source does not run. It may be called concurrently.
func (s *Source) PlacementStatus() PlacementStatus {
	if status := s.status.Load(); status != nil {
		return *status
	}
	return PlacementStatus{}
}

func (s *Source) setPlacementStatus(status PlacementStatus) {
	before := s.PlacementStatus()
	s.status.Store(&status)
	placement := s.options.Placement
	missingGauge.WithLabelValues(placement.Namespace, cmp.Or(placement.DecisionKey, placement.Name)).
		Add(float64(status.Missing - before.Missing))
}

// missingGauge adds up all sources of the process.
var missingGauge = register(prometheus.NewGaugeVec(prometheus.GaugeOpts{
	Name: "rollcall_inventory_placement_missing_profiles",
	Help: "Number of ClusterProfiles that a placement decision names and that do not exist or are not read.",
}, []string{"namespace", "decision"}))

// register returns the registered collector, which may be that of another copy of
// this package.
func register[C prometheus.Collector](collector C) C {
	err := metrics.Registry.Register(collector)
	if registered, ok := errors.AsType[prometheus.AlreadyRegisteredError](err); ok {
		return registered.ExistingCollector.(C)
	}
	if err != nil {
		panic(err)
	}
	return collector
}

// missing finds the profiles that a decision names and that have not been read.
type missing struct {
	placement *Placement
	grace     time.Duration
	report    func(PlacementStatus)

	changed bool                        // the decision, or the set of profiles
	since   map[inventory.Key]time.Time // of profiles that are missing
	next    time.Time                   // when a grace ends, or zero

	reported []inventory.Key // sorted
	logged   []inventory.Key
	loggedAt time.Time
}

func newMissing(options *Options, report func(PlacementStatus)) *missing {
	m := &missing{placement: options.Placement, grace: missingGrace, report: report, since: map[inventory.Key]time.Time{}}
	if options.usesCache() {
		m.grace += 2 * versionPoll // the cache of a version that is no longer served gets no new profiles
	}
	return m
}

// restart starts each grace again, as changes during an outage are not known yet.
func (m *missing) restart(now time.Time) {
	m.changed = true
	for key := range m.since {
		if _, reported := slices.BinarySearchFunc(m.reported, key, compareKeys); !reported {
			m.since[key] = now
		}
	}
}

// check reports the profiles that are missing, if they have changed. It returns when
// to call it again if nothing changes.
func (m *missing) check(log logr.Logger, d decision, profiles map[inventory.Key]*inventory.Profile, now time.Time) (next time.Time, ok bool) {
	if m.changed || !m.next.IsZero() && !now.Before(m.next) {
		m.find(d, profiles, now)
	}
	next, ok = m.next, !m.next.IsZero()
	if slices.Equal(m.reported, m.logged) {
		return next, ok
	}
	if due := m.loggedAt.Add(missingLogInterval); !m.loggedAt.IsZero() && now.Before(due) {
		return earlier(next, ok, due)
	}
	m.logged, m.loggedAt = m.reported, now
	log = log.WithValues("placement", m.placement.String())
	if len(m.reported) == 0 {
		log.Info("All profiles that the placement decision names exist")
	} else {
		log.Info("Placement decision names profiles that do not exist or are not read",
			"count", len(m.reported), "profiles", firstKeys(m.reported))
	}
	return next, ok
}

func (m *missing) find(d decision, profiles map[inventory.Key]*inventory.Profile, now time.Time) {
	m.changed, m.next = false, time.Time{}
	for key := range d.clusters {
		if _, known := m.since[key]; !known && profiles[key] == nil {
			m.since[key] = now
		}
	}
	maps.DeleteFunc(m.since, func(key inventory.Key, _ time.Time) bool { return !d.clusters[key] || profiles[key] != nil })
	var found []inventory.Key
	for key, since := range m.since {
		if end := since.Add(m.grace); now.Before(end) {
			m.next, _ = earlier(m.next, !m.next.IsZero(), end)
		} else {
			found = append(found, key)
		}
	}
	slices.SortFunc(found, compareKeys)
	if !slices.Equal(found, m.reported) {
		m.reported = found
		m.report(PlacementStatus{Missing: len(found), MissingProfiles: firstKeys(found)})
	}
}

// earlier returns the earlier time, of which the first is set only if ok.
func earlier(a time.Time, ok bool, b time.Time) (time.Time, bool) {
	if ok && a.Before(b) {
		return a, true
	}
	return b, true
}

func firstKeys(keys []inventory.Key) []inventory.Key {
	return slices.Clone(keys[:min(len(keys), maxMissing)])
}

func compareKeys(a, b inventory.Key) int {
	return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
}
