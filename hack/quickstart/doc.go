// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Quickstart shows Rollcall at work, on real control planes on this machine.
//
//	make quickstart
//
// It starts a hub and two member clusters, lists the members in the hub as
// ClusterProfiles, and runs examples/cluster-inventory-api against the hub. Then
// it adds a cluster, replaces a token, sends heartbeats and removes a cluster,
// and checks from the outside what the controller makes of each.
//
// The program is also an example of how such a hub is set up: hub.go has what
// a cluster manager does, member.go what each cluster contributes, and
// controller.go how a controller is configured with least privilege.
package main
