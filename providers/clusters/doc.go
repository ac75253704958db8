// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Package clusters provides clusters that a program adds and removes while it runs. It
// is for tests, and for combining clusters that other code creates with those of
// other providers:
//
//	provider := clusters.New()
//	mgr, err := mcmanager.New(config, provider, mcmanager.Options{})
//	…
//	err = provider.Add(ctx, "eu", cl)
//	…
//	provider.Remove("eu")
//
// The provider runs each cluster until it is removed. It engages the cluster when it
// responds and its caches have synced, and monitors its health, as a fleet does.
//
// Unlike clusters.Clusters of pkg/mc, which providers embed, it is a provider by
// itself.
package clusters
