// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/labels"
)

// Selection selects profiles by what they say. Its fields are joined by "and".
// The zero value selects all.
type Selection struct {
	// Labels selects by the profile's labels. A hub source selects by labels in
	// the hub's API server; this is for other sources. Defaults to all.
	Labels labels.Selector

	// Properties selects by the profile's properties (KEP-4322). All
	// expressions must hold.
	Properties []PropertyExpression

	// ClusterSets has the ClusterSets of which a cluster must be in one, as
	// ClusterSet tells. Defaults to all clusters, in a ClusterSet or not.
	ClusterSets []string

	// Health has the verdicts of HealthOf of which a cluster must have one.
	// Defaults to all. A cluster leaves when its verdict is no longer among them,
	// and is engaged anew when it is again: {Healthy, HealthUnknown} bears more
	// than {Healthy}.
	Health []HealthStatus

	// KubernetesVersion is the range of versions in which the cluster's must be.
	// Defaults to all.
	KubernetesVersion VersionRange
}

// Predicate returns the selection as a predicate for Select. The error says
// what in the selection makes no sense. Later changes of the selection do not
// change the predicate.
func (s Selection) Predicate() (Predicate, error) {
	var all []Predicate
	if s.Labels != nil && !s.Labels.Empty() {
		all = append(all, func(profile *Profile) bool { return s.Labels.Matches(labels.Set(profile.Labels)) })
	}
	for _, expression := range s.Properties {
		matches, err := expression.predicate()
		if err != nil {
			return nil, fmt.Errorf("selection: property %q: %w", expression.Name, err)
		}
		all = append(all, matches)
	}
	if len(s.ClusterSets) > 0 {
		if slices.Contains(s.ClusterSets, "") {
			return nil, errors.New("selection: the name of a ClusterSet must not be empty")
		}
		sets := slices.Clone(s.ClusterSets)
		all = append(all, func(profile *Profile) bool { return slices.Contains(sets, ClusterSet(profile)) })
	}
	if len(s.Health) > 0 {
		verdicts := slices.Clone(s.Health)
		for _, verdict := range verdicts {
			if verdict != Healthy && verdict != Unhealthy && verdict != HealthUnknown {
				return nil, fmt.Errorf("selection: there is no health %q", verdict)
			}
		}
		all = append(all, func(profile *Profile) bool { return slices.Contains(verdicts, HealthOf(profile).Status) })
	}
	inRange, err := s.KubernetesVersion.predicate()
	if err != nil {
		return nil, fmt.Errorf("selection: %w", err)
	}
	if inRange != nil {
		all = append(all, inRange)
	}
	return func(profile *Profile) bool {
		for _, matches := range all {
			if !matches(profile) {
				return false
			}
		}
		return true
	}, nil
}
