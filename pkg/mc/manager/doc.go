// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Package manager provides the manager of a multi-cluster controller.
//
// It is controller-runtime's manager for one cluster, the local one, together
// with a provider of further clusters:
//
//	mgr, err := mcmanager.New(ctrl.GetConfigOrDie(), provider, mcmanager.Options{})
//	…
//	err = mgr.Start(ctx)
//
// Leader election, metrics, webhooks and health checks are those of
// controller-runtime's manager. Every cluster of the provider is engaged with
// every component added with Add, whichever comes first.
package manager
