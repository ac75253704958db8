// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Package hub is the inventory source that reads the ClusterProfiles of a hub
// cluster (KEP-4322).
//
//	src, err := hub.New(hubConfig, hub.Options{Namespaces: []string{"fleet"}})
//
// If the hub does not serve the ClusterProfile API, the source logs it once and
// waits for the API. While the hub cannot be read, no profile is removed; when it
// can be read again, those that have been deleted are. If the hub was restored from
// a backup, which its resource version shows, everything is read again.
//
// # Namespaces
//
// One namespace is one inventory. New requires the namespaces to read;
// metav1.NamespaceAll stands for all.
//
// # Versions
//
// The source reads v1alpha1 of the API, and v1alpha2 where only that is served. It
// sends profiles of one type. When the hub changes what it serves, the source follows
// without removing a profile, and logs it once.
//
// # The cache of a manager
//
// With Options.Cache, the source has no own watch of ClusterProfiles, and sees those
// that the cache is limited to. Like any informer of controller-runtime, it then
// does not notice that the hub was restored from a backup. If the hub forbids to
// list or watch ClusterProfiles, the cache does not sync: controllers that wait for
// all of its informers wait, too, until their CacheSyncTimeout (2 minutes by
// default).
//
// The source reads the namespaces of the cache, and logs once if it is not limited to
// some. Every 15 s it asks discovery which version the hub serves. If that is only
// v1alpha2, the informer is one of unstructured objects. The informer of a version that
// is no longer served stays in the cache without the source's handler.
//
// # ClusterSets of namespaces
//
// A namespace's label may name the ClusterSet of all profiles in it. The source
// also reads the metadata of namespaces, and sends profiles with the annotation
// inventory.AnnotationNamespaceClusterSet, which inventory.ClusterSet reads. When
// the label changes, the profiles are sent again.
//
// # Names
//
// The source removes the annotations that rename a cluster, such as
// inventory.AnnotationClusterName, as the author of a profile could otherwise take
// the name of another cluster. Options.TrustAnnotations keeps them.
//
// # Placement decisions
//
// With Options.Placement, the source sends only the clusters that a scheduler has
// selected (KEP-5313); see [Placement]. [Source.PlacementStatus] and the metric
// rollcall_inventory_placement_missing_profiles report profiles that the decision
// names and that do not exist.
//
// # Permissions
//
// The source writes nothing. It needs to list and watch
//
//   - clusterprofiles, in each namespace that it reads, or in all;
//   - placementdecisions, in the namespace of the placement, if there is one;
//   - namespaces, if their labels matter. To read single namespaces, permission for
//     these by name (resourceNames) is enough; it takes a ClusterRole, as
//     namespaces are cluster-scoped. Without it the source logs that once and
//     ignores the labels.
package hub
