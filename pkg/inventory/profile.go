// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
)

// Profile is a ClusterProfile (KEP-4322). The alias is the one place that says
// which version of the API the project reads.
type Profile = v1alpha1.ClusterProfile

// AccessProvider is one way to reach a cluster, as a profile lists it
// (KEP-5339).
type AccessProvider = v1alpha1.AccessProvider

// Key identifies a profile within a Source.
type Key = types.NamespacedName

const (
	// AnnotationClusterName holds the name that a source itself uses for the
	// cluster, where that is not the profile's namespace and name. Whoever writes
	// it chooses the name.
	AnnotationClusterName = "rollcall.dev/cluster-name"

	// PropertyClusterID is the property with the cluster's ID, unique in its
	// ClusterSet and unchanged while it is a member (KEP-2149).
	PropertyClusterID = "cluster.clusterset.k8s.io"

	// PropertyClusterSet is the property with the ClusterSet's name, present
	// exactly while the cluster is a member (KEP-2149).
	PropertyClusterSet = "clusterset.k8s.io"
)

// KeyOf returns the profile's key.
func KeyOf(profile *Profile) Key {
	return Key{Namespace: profile.Namespace, Name: profile.Name}
}

// ClusterName returns the name that a fleet uses for the profile's cluster:
// the annotation AnnotationClusterName where there is one, else
// "namespace/name".
func ClusterName(profile *Profile) string {
	if name := profile.Annotations[AnnotationClusterName]; name != "" {
		return name
	}
	return KeyOf(profile).String()
}

// CompareClaims orders the profiles that come to the same cluster name by their
// claim to it: the one whose namespace and name it is, then the one that was
// created first, then the one whose key is first. It is one for slices.SortFunc.
func CompareClaims(a, b *Profile) int {
	if own := ClusterName(a) == KeyOf(a).String(); own != (ClusterName(b) == KeyOf(b).String()) {
		if own {
			return -1
		}
		return 1
	}
	return precedes(a, b)
}

// Property returns the value of the profile's property of that name, and
// whether there is one.
func Property(profile *Profile, name string) (string, bool) {
	for i := range profile.Status.Properties {
		if profile.Status.Properties[i].Name == name {
			return profile.Status.Properties[i].Value, true
		}
	}
	return "", false
}

// ClusterID returns the cluster's ID (KEP-2149), or "" where the profile does
// not give one.
func ClusterID(profile *Profile) string {
	id, _ := Property(profile, PropertyClusterID)
	return id
}

// AccessProviders returns the ways to reach the cluster: those under
// status.accessProviders, then those under the deprecated
// status.credentialProviders whose name is not among the former (KEP-5339).
func AccessProviders(profile *Profile) []AccessProvider {
	current, deprecated := profile.Status.AccessProviders, profile.Status.CredentialProviders
	all := make([]AccessProvider, 0, len(current)+len(deprecated))
	seen := make(map[string]bool, len(current)+len(deprecated))
	for _, list := range [][]AccessProvider{current, deprecated} {
		for _, provider := range list {
			if seen[provider.Name] {
				continue
			}
			seen[provider.Name] = true
			all = append(all, provider)
		}
	}
	return all
}
