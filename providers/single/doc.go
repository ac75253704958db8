// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Package single provides one existing cluster under a fixed name.
//
// It is for programs that use the multi-cluster packages for a single cluster, and
// for combining a cluster, such as the manager's local one, with those of other
// providers:
//
//	provider := single.New("home", cl)
//	mgr, err := mcmanager.New(config, provider, mcmanager.Options{})
//	…
//	err = mgr.GetLocalManager().Add(cl) // runs the cluster
//
// The provider does not run the cluster. It engages the cluster when its caches have
// synced, monitors its health as a fleet does, and disengages it when the provider
// stops.
package single
