// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Package inventory lists clusters and what is known about them, always as
// ClusterProfiles (KEP-4322).
//
// A [Source] sends a [Sink] the profiles that are added, changed and removed:
//
//	src, err := hub.New(hubConfig, hub.Options{Namespaces: []string{"fleet"}})
//	…
//	err = inventory.Restart(src).Run(ctx, sink)
//
// Sources combine. [Select] keeps the profiles that match, [Merge] joins several
// sources, [Rename] gives clusters other names, and [Restart] restarts a source that
// fails. All are level-triggered: the final state of a sink depends on the profiles
// that exist, not on the order of events.
//
//	src := inventory.Merge(
//		inventory.Rename(hubA, inventory.Prefix("a#")),
//		inventory.Rename(hubB, inventory.Prefix("b#")),
//	)
//
// A cluster may have several profiles. [CorrelationKeys] returns what a profile says of
// its cluster's identity, and [TrustDomain] whose word that is.
//
// Functions read a profile, so that no other code depends on its layout:
// [ClusterName], [ClusterID], [MemberID], [ClusterSet], [KubernetesVersion],
// [HealthOf], [AccessProviders] and [Property]. Two versions of a profile with the same
// [Fingerprint] lead to the same connection.
//
// [Synthesize] makes the profile of a cluster that no hub lists.
//
// Profiles are shared and must not be changed: use DeepCopy first. No profile
// contains a secret.
package inventory
