// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Package fleet connects the clusters of an inventory.
//
// A [Fleet] is a multicluster.Provider. For each ClusterProfile of an
// inventory.Source it gets credentials, connects the cluster, checks its identity,
// syncs its caches and engages it with the manager. After that it follows changes of
// the profile and probes the cluster's health, until the profile is removed.
//
// # Setup
//
//	f, err := fleet.New(fleet.Options{Source: source, Credentials: resolver})
//	…
//	mgr, err := mcmanager.New(config, f, mcmanager.Options{})
//
// The manager starts the fleet. Clusters that are not built from a rest.Config are
// connected by a [Connector].
//
// # Usage
//
//   - [Fleet.Get] returns an engaged cluster, and [ProfileFrom] its profile.
//   - [FreshnessOf] returns since when a cache is known to be in step, [Behind] which
//     caches of a cluster are not, and ConnectionOptions.MaxCacheAge refuses to create
//     and to delete because of one that is too old.
//   - [Fleet.Status], [Fleet.StatusHandler] and the metrics rollcall_fleet_* show the
//     state of each cluster.
//   - [Fleet.ReadyCheck] is a check for the manager's readiness probe.
//   - [Fleet.Recheck] resolves the credentials of a profile again.
//
// # What it promises
//
//   - No cluster delays another. Each has its own goroutine, and no lock is held
//     during a request to a cluster. [Fleet.Get] never blocks.
//   - Changes that do not concern the connection, such as heartbeats, conditions,
//     labels and properties of a profile, except the ClusterID, leave the connection
//     as it is.
//   - A cluster stays engaged when its credentials or its endpoint change: only the
//     connection is switched. Caches and engaged controllers stay.
//   - The caches of a cluster that is Ready are in step, or its status names those
//     that are not. A cluster restored from a backup stays engaged, and its handlers
//     see what was lost as deleted.
//   - A cluster is re-engaged when its identity has changed or cannot be verified.
//   - A cluster that cannot be connected is retried with backoff, and at once when
//     its profile changes. Clusters and profiles that change again and again are
//     throttled.
//   - An index of a kind that a cluster does not serve, or forbids, only affects Lists
//     that use it.
//   - After a cluster is disengaged, none of its goroutines and connections remain.
//
// # States
//
//	Pending ─▶ Connecting ─▶ Syncing ─▶ Ready ⇄ Degraded
//	   ▲           │            │         │        │
//	   │           ▼            ▼         ▼        ▼
//	   └──────── Backoff ◀──────┴─────────┴────────┘       any ─▶ Leaving
//
// A cluster is engaged while it is Ready or Degraded. [ClusterStatus] has the
// reason, the last error and the time of the last change of the state.
//
// # Identity
//
// The identity of a cluster is the UID of its namespace kube-system. If that cannot
// be read, it is the ClusterID of the profile (KEP-2149). If neither can be compared
// after a change of the connection, the cluster is re-engaged.
//
// # Implementation
//
// The packages below internal are: worker (the states of one cluster), admission
// (startup slots), identity, monitor (observes requests), informer (keeps caches in
// step), mapping (REST mappings that clusters share), restoptions and timing. Package
// clients, which needs no Fleet, uses some of them, too.
package fleet
