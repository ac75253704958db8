// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Package metadata reads and sets the labels and annotations of profiles.
package metadata

import (
	"cmp"
	"maps"

	"sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
)

// labelClusterSetInKEP is v1alpha1.LabelClusterSetKey as the text of KEP-4322
// spells it.
const labelClusterSetInKEP = "clusterset.multicluster.x-k8s.io"

// ClusterSet returns the name of the ClusterSet in the labels of a namespace or
// of a profile, or "".
func ClusterSet(labels map[string]string) string {
	return cmp.Or(labels[v1alpha1.LabelClusterSetKey], labels[labelClusterSetInKEP])
}

// WithAnnotation returns a copy of the profile with the annotation set, or
// without it if the value is empty. The copy shares everything else with the
// profile. If there is nothing to change, it returns the profile itself.
func WithAnnotation(profile *v1alpha1.ClusterProfile, key, value string) *v1alpha1.ClusterProfile {
	if present, ok := profile.Annotations[key]; present == value && ok == (value != "") {
		return profile
	}
	changed := *profile
	changed.Annotations = make(map[string]string, len(profile.Annotations)+1)
	maps.Copy(changed.Annotations, profile.Annotations)
	delete(changed.Annotations, key)
	if value != "" {
		changed.Annotations[key] = value
	}
	return &changed
}
