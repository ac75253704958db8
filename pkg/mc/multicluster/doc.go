// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Package multicluster holds the contracts between the parts of a
// multi-cluster controller.
//
// A [Provider] finds clusters and names them. It engages each cluster that it
// has connected with an [Aware], in practice the multi-cluster manager, under a
// context that ends when the cluster is disengaged. That context carries the
// [Engagement], through which the two share the cluster's health, the backlog of
// its requests, notices of changes, and the limit on starts:
//
//	engagement := multicluster.NewEngagement(nil)
//	clusterCtx, leave := context.WithCancel(multicluster.WithEngagement(ctx, engagement))
//	if err := aware.Engage(clusterCtx, "eu-1", cl); err != nil { … }
//	engagement.SetHealthy(false) // its requests wait until it is healthy again
//	…
//	leave() // everything that Engage started for eu-1 stops
//
// The package depends on controller-runtime alone. A program that brings a
// Provider of its own needs nothing else of Rollcall's inventory, credentials
// or fleet.
package multicluster
