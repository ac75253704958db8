// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/util/version"
)

// ErrNoVersion means that a profile does not contain a Kubernetes version.
var ErrNoVersion = errors.New("the profile has no Kubernetes version")

// KubernetesVersion returns the cluster's version of Kubernetes, such as
// "v1.37.2", "1.37" or "v1.36.3-gke.100". The error is ErrNoVersion if the
// profile has none.
func KubernetesVersion(profile *Profile) (*version.Version, error) {
	text := profile.Status.Version.Kubernetes
	if text == "" {
		return nil, ErrNoVersion
	}
	return version.Parse(text)
}

// VersionRange is a range of Kubernetes versions. Only major, minor and patch
// are compared, as a suffix may be a vendor's as well as a pre-release:
// "v1.36.0-gke.1" is at least "1.36". The zero value contains all clusters; any
// other range contains only clusters with a known version.
type VersionRange struct {
	// AtLeast is the lowest version in the range, such as "1.35" or "v1.35.2".
	// Defaults to no limit.
	AtLeast string

	// Below is the lowest version above the range. Defaults to no limit.
	Below string
}

// predicate returns nil if the range contains all profiles.
func (r VersionRange) predicate() (Predicate, error) {
	if r == (VersionRange{}) {
		return nil, nil
	}
	atLeast, err := parseLimit(r.AtLeast)
	if err != nil {
		return nil, err
	}
	below, err := parseLimit(r.Below)
	if err != nil {
		return nil, err
	}
	if atLeast != nil && below != nil && !atLeast.LessThan(below) {
		return nil, fmt.Errorf("no version is at least %q and below %q", r.AtLeast, r.Below)
	}
	return func(profile *Profile) bool {
		v, err := KubernetesVersion(profile)
		if err != nil {
			return false
		}
		v = release(v)
		return (atLeast == nil || v.AtLeast(atLeast)) && (below == nil || v.LessThan(below))
	}, nil
}

func parseLimit(text string) (*version.Version, error) {
	if text == "" {
		return nil, nil
	}
	v, err := version.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("invalid Kubernetes version %q: %w", text, err)
	}
	return release(v), nil
}

// release returns major, minor and patch of the version.
func release(v *version.Version) *version.Version {
	return version.MajorMinor(v.Major(), v.Minor()).WithPatch(v.Patch())
}
