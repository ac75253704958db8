// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Package inventory is the roll of clusters: which there are and what is known
// of them, always as ClusterProfiles (KEP-4322).
//
// A [Source] tells a [Sink] of profiles as they come, change and go:
//
//	src := inventory.Restart(hub.New(hubConfig, hub.Options{Namespace: "fleet"}))
//	err := src.Run(ctx, sink)
//
// The package also reads profiles, so that nobody else needs to know where
// things stand in one: [ClusterName], [ClusterID], [ClusterSet],
// [AccessProviders] and [Property]. [Fingerprint] tells whether two versions
// of a profile lead to the same connection.
//
// A profile handed from one part to another is shared and must not be changed
// by anyone; use DeepCopy first. No profile holds a secret.
package inventory
