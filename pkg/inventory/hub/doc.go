// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Package hub is the inventory source that reads the ClusterProfiles of a hub
// cluster (KEP-4322).
//
//	src, err := hub.New(hubConfig, hub.Options{Namespace: "fleet"})
//
// The hub may lack the ClusterProfile API when the source starts: it waits,
// says so once, and goes on when the API is there. A hub that cannot be reached
// leaves the roll as it was; once it answers again, the list that follows
// removes what has gone meanwhile and nothing else.
//
// The source needs the verbs list and watch on clusterprofiles in the
// namespace that it reads, or in all.
package hub
