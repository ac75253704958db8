// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Package multicluster holds the contracts between the parts of a
// multi-cluster controller: who names clusters, who finds them, and who wants
// to hear of them.
//
// A [Provider] knows clusters by [ClusterName]. When it has connected one, it
// engages it with an [Aware] (in practice the multi-cluster manager), under a
// context that ends when the cluster leaves:
//
//	clusterCtx, leave := context.WithCancel(ctx)
//	if err := aware.Engage(clusterCtx, "eu-1", cl); err != nil { … }
//	…
//	leave() // everything that Engage started for eu-1 stops
//
// The package depends on controller-runtime alone. A program that brings a
// Provider of its own needs nothing else of Rollcall's inventory, credentials
// or fleet.
package multicluster
