// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Package hub is the inventory source that reads the ClusterProfiles of a hub
// cluster (KEP-4322).
//
//	src, err := hub.New(hubConfig, hub.Options{Namespaces: []string{"fleet"}})
//
// The hub may lack the ClusterProfile API when the source starts: it waits,
// says so once, and goes on when the API is there. A hub that cannot be reached
// leaves the roll as it was; once it answers again, the list that follows
// removes what has gone meanwhile and nothing else.
//
// # ClusterSets of namespaces
//
// A namespace's label may name the ClusterSet of all profiles in it, but is not
// in the profiles. The source reads the namespaces' metadata too and conveys
// the label in the annotation inventory.AnnotationNamespaceClusterSet of the
// profiles that it hands out, where inventory.ClusterSet finds it. A change of
// the label hands the profiles out again.
//
// # Names
//
// The annotations with which sources speak of names, such as
// inventory.AnnotationClusterName, are removed from the profiles, so that none
// takes the name of another; Options.TrustAnnotations leaves them.
//
// # Placement decisions
//
// With Options.Placement, only clusters that a scheduler has decided on are
// handed out (KEP-5313); see [Placement].
//
// # Rights
//
// The source lists and watches, and writes nothing:
//
//   - clusterprofiles, in each namespace that it reads, or in all;
//   - placementdecisions, in the namespace of the placement, if there is one;
//   - namespaces. Where single namespaces are read, the right to list and watch
//     those by name (resourceNames) is enough; namespaces have no namespace, so it
//     takes a ClusterRole. Without it the source says so once and goes on without
//     the namespaces' labels.
package hub
