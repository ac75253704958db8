// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package inventory

import "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

const (
	// AnnotationNamespaceClusterSet holds the ClusterSet that the label of the
	// profile's namespace names. A namespace's labels are not in the profile, so
	// the source that reads both puts the annotation on what it hands out. In a
	// hub it means nothing: the hub source replaces it.
	AnnotationNamespaceClusterSet = "rollcall.dev/namespace-clusterset"

	// LabelClusterSet names a ClusterSet on a namespace of profiles, as the API's
	// code has it, and with some managers on the profile itself (KEP-4322).
	LabelClusterSet = v1alpha1.LabelClusterSetKey

	// LabelClusterSetInKEP is the same label as the text of KEP-4322 spells it.
	LabelClusterSetInKEP = "clusterset.multicluster.x-k8s.io"
)

// ClusterSet returns the name of the cluster's ClusterSet, or "" where none is
// known: that of the property PropertyClusterSet (KEP-2149), else that of the
// profile's namespace (AnnotationNamespaceClusterSet), else that of the
// profile's labels (see ClusterSetOfLabels).
func ClusterSet(profile *Profile) string {
	if set, _ := Property(profile, PropertyClusterSet); set != "" {
		return set
	}
	if set := profile.Annotations[AnnotationNamespaceClusterSet]; set != "" {
		return set
	}
	return ClusterSetOfLabels(profile.Labels)
}

// ClusterSetOfLabels returns the ClusterSet which the labels of a namespace or
// of a profile name, or "": that of LabelClusterSet, else that of
// LabelClusterSetInKEP.
func ClusterSetOfLabels(labels map[string]string) string {
	if set := labels[LabelClusterSet]; set != "" {
		return set
	}
	return labels[LabelClusterSetInKEP]
}
