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
// # The cache of a manager
//
// With Options.Cache, the source has no own watch of ClusterProfiles, and sees those
// that the cache is limited to. Like any informer of controller-runtime, it then
// does not notice that the hub was restored from a backup. If the hub forbids to
// list or watch ClusterProfiles, the cache does not sync: controllers that wait for
// all of its informers wait, too, until their CacheSyncTimeout (2 minutes by
// default).
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
// selected (KEP-5313); see [Placement].
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
