// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Package worker keeps the cluster of one profile connected.
//
// A [Worker] runs in one goroutine, which owns the state of its cluster:
//
//	Pending ─▶ Connecting ─▶ Syncing ─▶ Ready ⇄ Degraded
//	   ▲           │            │         │        │
//	   │           ▼            ▼         ▼        ▼
//	   └──────── Backoff ◀──────┴─────────┴────────┘       any ─▶ Leaving
//
// A [Backend] connects clusters. The worker decides when: it waits for a startup
// slot, probes the connection, creates the [Cluster], engages it, and then follows
// changes of the profile and probes the cluster's health in a session, until the
// cluster has to be disengaged. All waiting is in select statements; functions of
// others run with a deadline and without locks.
//
// One [Throttle] per cluster name decides how soon a failed or changed cluster is
// connected again. It outlives the worker, so that a profile that is removed and
// added again is not a way around it.
package worker
