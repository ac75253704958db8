// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Quickstart shows Rollcall at work, on real control planes on this machine.
//
//	make quickstart
//
// It starts a hub and two member clusters, creates a ClusterProfile for each
// member in the hub, and runs examples/cluster-inventory-api against the hub. Then
// it adds a cluster, replaces a token, sends heartbeats, deletes one of two profiles
// of a cluster and removes a cluster, and verifies the controller's output after each
// step.
//
// The program is also an example of how to set up a hub. In internal/realfleet,
// hub.go does what a cluster manager does, and member.go prepares a cluster.
// Here, controller.go configures a controller with minimal permissions.
package main
