// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Quickstart shows Rollcall at work, on real control planes on this machine.
//
//	make quickstart
//	make quickstart FROM=kubeconfig # or file, cluster-api
//
// It starts a hub and two member clusters, creates a ClusterProfile for each
// member in the hub, and runs examples/cluster-inventory-api against the hub. Then
// it adds a cluster that trusts the hub, makes it unreachable, gives one a wrong
// address, replaces a token, sends heartbeats, deletes one of two profiles of a cluster
// and removes a cluster, and verifies the controller's output after each step.
//
// With the other values of FROM, kubeconfigs in Secrets, kubeconfig files or Clusters of
// Cluster API take the place of ClusterProfiles, and the example for that provider runs.
// The steps are the same, without the second profile, which these providers do not have,
// and each cluster has a stored token.
//
// The program is also an example of how to set up a hub. In internal/realfleet,
// hub.go does what a cluster manager does, member.go prepares a cluster, and trust.go
// one that trusts the hub.
// Here, hub.go, kubeconfig.go, file.go and clusterapi.go configure a controller with
// minimal permissions.
package main
