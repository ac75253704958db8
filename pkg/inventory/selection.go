// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/labels"
)

// Selection selects profiles by their content. A profile must match all fields.
// The zero value selects all.
type Selection struct {
	// Labels selects by the profile's labels. For a hub source, prefer
	// hub.Options.LabelSelector, which the API server evaluates. Defaults to all.
	Labels labels.Selector

	// Properties selects by the profile's properties (KEP-4322). All expressions
	// must match. Defaults to all.
	Properties []PropertyExpression

	// ClusterSets selects the clusters of any of these ClusterSets. Defaults to
	// all clusters, in a ClusterSet or not.
	ClusterSets []string

	// Health selects the clusters with any of these results of HealthOf. A cluster
	// whose health changes to another one is disengaged, and engaged again
	// later: {Healthy, HealthUnknown} is more tolerant than {Healthy}. Defaults to
	// all.
	Health []HealthStatus

	// KubernetesVersion selects by the cluster's version. Defaults to all.
	KubernetesVersion VersionRange
}

// Predicate returns the selection as a predicate for Select, or an error if a
// field is invalid. Later changes of the selection do not change the predicate.
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
		statuses := slices.Clone(s.Health)
		for _, status := range statuses {
			if status != Healthy && status != Unhealthy && status != HealthUnknown {
				return nil, fmt.Errorf("selection: unknown health %q", status)
			}
		}
		all = append(all, func(profile *Profile) bool { return slices.Contains(statuses, HealthOf(profile).Status) })
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

// Predicate reports whether a profile matches. It is called once for each version
// of a profile, so it must depend on nothing else. It must return at once.
type Predicate func(profile *Profile) bool

// Select returns a source of src's profiles that match all predicates. A profile
// that no longer matches is removed. Selection.Predicate returns a predicate for
// common conditions.
func Select(src Source, predicates ...Predicate) Source {
	return &decorated{
		name: "selection of", src: src,
		SourceFunc: func(ctx context.Context, sink Sink) error {
			return src.Run(ctx, &selectSink{Sink: sink, predicates: predicates})
		},
	}
}

// selectSink keeps no state: it removes every profile that does not match.
type selectSink struct {
	Sink
	predicates []Predicate
}

func (s *selectSink) Put(profile *Profile) {
	for _, matches := range s.predicates {
		if !matches(profile) {
			s.Remove(KeyOf(profile))
			return
		}
	}
	s.Sink.Put(profile)
}
