// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Package inventory is the roll of clusters: which there are and what is known
// of them, always as ClusterProfiles (KEP-4322).
//
// A [Source] tells a [Sink] of profiles as they come, change and go:
//
//	src, err := hub.New(hubConfig, hub.Options{Namespace: "fleet"})
//	…
//	err = inventory.Restart(src).Run(ctx, sink)
//
// Sources are put together from sources. [Select] keeps the profiles that match,
// [Merge] joins several sources, [Rename] gives clusters other names, [Dedupe]
// finds profiles that are of one cluster, and [Restart] runs a source again
// when it fails. All are level-triggered: what a sink ends up with depends on
// the profiles there are, not on the way they came.
//
//	src := inventory.Dedupe(inventory.Merge(
//		inventory.Rename(hubA, inventory.Prefix("a#")),
//		inventory.Rename(hubB, inventory.Prefix("b#")),
//	))
//
// The package also reads profiles, so that nobody else needs to know where
// things stand in one: [ClusterName], [ClusterID], [ClusterSet],
// [KubernetesVersion], [HealthOf], [AccessProviders] and [Property].
// [Fingerprint] tells whether two versions of a profile lead to the same
// connection.
//
// Clusters that no hub lists get their profiles from [Synthesize].
//
// A profile handed from one part to another is shared and must not be changed
// by anyone; use DeepCopy first. No profile holds a secret.
package inventory
