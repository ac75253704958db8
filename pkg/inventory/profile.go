// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"github.com/rollcall-dev/rollcall/pkg/inventory/internal/metadata"
)

// Profile is a ClusterProfile (KEP-4322). This alias decides which version of
// the API the project reads.
type Profile = v1alpha1.ClusterProfile

// AccessProvider is one way to reach a cluster, as listed in a profile
// (KEP-5339).
type AccessProvider = v1alpha1.AccessProvider

// Key identifies a profile within a Source.
type Key = types.NamespacedName

const (
	// AnnotationClusterName is the cluster's name in its source, if that is not
	// the profile's namespace and name. The author of the annotation chooses the
	// name.
	AnnotationClusterName = "rollcall.dev/cluster-name"

	// AnnotationNamespaceClusterSet is the ClusterSet in the labels of the
	// profile's namespace. The hub source sets it on the profiles that it sends,
	// as a profile does not contain the labels of its namespace; an annotation of
	// this name in the hub is ignored.
	AnnotationNamespaceClusterSet = "rollcall.dev/namespace-clusterset"

	// PropertyClusterID is the property with the cluster's ID, unique in its
	// ClusterSet and unchanged while it is a member (KEP-2149).
	PropertyClusterID = "cluster.clusterset.k8s.io"

	// PropertyClusterIDAlias is another name of PropertyClusterID, which some cluster
	// managers write. ClusterID reads it if PropertyClusterID is missing.
	PropertyClusterIDAlias = "clusterset.k8s.io/cluster-id"

	// PropertyClusterSet is the property with the ClusterSet's name, present
	// exactly while the cluster is a member (KEP-2149).
	PropertyClusterSet = "clusterset.k8s.io"

	// LabelMemberID is the label with the ID of the member that a profile stands for:
	// the same in all namespaces of a hub that have a profile of the cluster
	// (KEP-4322).
	LabelMemberID = "multicluster.x-k8s.io/inventory-member-id"
)

// KeyOf returns the profile's key.
func KeyOf(profile *Profile) Key {
	return Key{Namespace: profile.Namespace, Name: profile.Name}
}

// ClusterName returns the name of the profile's cluster in a fleet: the
// annotation AnnotationClusterName if set, else "namespace/name".
func ClusterName(profile *Profile) string {
	if name := profile.Annotations[AnnotationClusterName]; name != "" {
		return name
	}
	return KeyOf(profile).String()
}

// ComparePrecedence orders profiles with the same cluster name by their
// precedence: first the one whose namespace and name is the cluster name, then
// the oldest one, then by key. It is for slices.SortFunc. A fleet gives a name
// that becomes free to the first; a source that has a list sends it in this order.
func ComparePrecedence(a, b *Profile) int {
	if own := ClusterName(a) == KeyOf(a).String(); own != (ClusterName(b) == KeyOf(b).String()) {
		if own {
			return -1
		}
		return 1
	}
	return compareAge(a, b)
}

// compareAge orders profiles by creation time, then by key. Profiles without a
// creation time come last.
func compareAge(a, b *Profile) int {
	at, bt := a.CreationTimestamp, b.CreationTimestamp
	switch {
	case at.IsZero() && !bt.IsZero():
		return 1
	case bt.IsZero() && !at.IsZero():
		return -1
	}
	return cmp.Or(at.Compare(bt.Time), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// Property returns the value of the profile's property with that name, and
// whether there is one.
func Property(profile *Profile, name string) (string, bool) {
	for i := range profile.Status.Properties {
		if profile.Status.Properties[i].Name == name {
			return profile.Status.Properties[i].Value, true
		}
	}
	return "", false
}

// ClusterID returns the cluster's ID (KEP-2149), or "" if the profile has none: the
// property PropertyClusterID, else PropertyClusterIDAlias.
func ClusterID(profile *Profile) string {
	if id, _ := Property(profile, PropertyClusterID); id != "" {
		return id
	}
	id, _ := Property(profile, PropertyClusterIDAlias)
	return id
}

// MemberID returns the ID of the member that the profile stands for (KEP-4322), or
// "" if it has none. Profiles of a hub with the same ID, in any of its namespaces,
// are of the same cluster. The author of the profile chooses it.
func MemberID(profile *Profile) string {
	return profile.Labels[LabelMemberID]
}

// ClusterSet returns the name of the cluster's ClusterSet, or "" if none is
// known. It is the first of the property PropertyClusterSet (KEP-2149), the
// annotation AnnotationNamespaceClusterSet and the profile's label (KEP-4322),
// which the API names multicluster.x-k8s.io/clusterset and the KEP
// clusterset.multicluster.x-k8s.io.
func ClusterSet(profile *Profile) string {
	if set, _ := Property(profile, PropertyClusterSet); set != "" {
		return set
	}
	if set := profile.Annotations[AnnotationNamespaceClusterSet]; set != "" {
		return set
	}
	return metadata.ClusterSet(profile.Labels)
}

// AccessProviders returns the ways to reach the cluster: status.accessProviders,
// then those of the deprecated status.credentialProviders with other names
// (KEP-5339).
func AccessProviders(profile *Profile) []AccessProvider {
	current, deprecated := profile.Status.AccessProviders, profile.Status.CredentialProviders
	all := make([]AccessProvider, 0, len(current)+len(deprecated))
	seen := make(map[string]bool, len(current)+len(deprecated))
	for _, list := range [][]AccessProvider{current, deprecated} {
		for _, provider := range list {
			if !seen[provider.Name] {
				seen[provider.Name] = true
				all = append(all, provider)
			}
		}
	}
	return all
}

// Fingerprint returns a digest of what a connection to the profile's cluster
// depends on: its access providers, in any order. Changes of conditions,
// properties and labels leave it unchanged.
func Fingerprint(profile *Profile) string {
	providers := AccessProviders(profile)
	slices.SortFunc(providers, func(a, b AccessProvider) int { return cmp.Compare(a.Name, b.Name) })

	digest := sha256.New()
	for i := range providers {
		if err := json.NewEncoder(digest).Encode(&providers[i]); err != nil {
			// Only an extension that is not JSON, which no API server accepts. The
			// text still differs when the extension does.
			fmt.Fprintf(digest, "%+v\n", providers[i])
		}
	}
	return hex.EncodeToString(digest.Sum(nil))
}
