// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Package fleet keeps one live cluster for each profile of an inventory.
//
// A [Fleet] is a multicluster.Provider. It listens to an inventory.Source,
// turns each profile into a connection with a credentials.Method, starts the
// cluster, and engages it with the manager:
//
//	f, err := fleet.New(fleet.Options{Source: source, Credentials: resolver})
//	…
//	mgr, err := mcmanager.New(config, f, mcmanager.Options{})
//
// It is the one place that connects, watches over and drops clusters: a
// provider is a source, a credential method and options.
//
// # What it promises
//
//   - No cluster can delay another. Each has a goroutine of its own that owns
//     its state, and no lock is held while one is talked to.
//   - [Fleet.Get] is a map read that never blocks.
//   - What does not change how a cluster is reached never touches it:
//     heartbeats, conditions, properties and labels of its profile.
//   - A cluster outlives its credentials and its endpoint. When a profile leads
//     to another address, CA or credential of the same cluster, the transport
//     under the running cluster is exchanged: caches, engaged controllers and
//     watches' resource versions stay. Only where the cluster behind it is
//     another one, or cannot be shown to be the same, it is engaged anew.
//   - A cluster that cannot be reached is tried again with backoff, at once when
//     its profile changes, and is engaged when it can be.
//   - After a cluster has left, nothing of it remains.
//   - Clusters that serve the same resources share one REST mapper. One in which
//     a CRD is installed sees it at once, and changes nothing for the others.
//
// # How a cluster is known to be the same
//
// By the UID of its kube-system namespace where it may be read, before and
// after; else by the ClusterID of its profile (KEP-2149). Where neither can be
// compared, another access is taken for another cluster.
package fleet
