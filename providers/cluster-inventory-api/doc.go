// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Package clusterinventoryapi provides the clusters of a hub's ClusterProfiles
// (KEP-4322), which it connects with credential plugins (KEP-5339).
//
//	resolver, err := credentials.New(credentials.Options{ProviderFile: "providers.json"})
//	…
//	provider, err := clusterinventoryapi.New(clusterinventoryapi.Options{Credentials: resolver})
//	…
//	mgr, err := mcmanager.New(ctrl.GetConfigOrDie(), provider, mcmanager.Options{})
//
// The hub is the manager's local cluster unless Options.Hub is set. The manager
// starts the provider. The name of a cluster is the "namespace/name" of its profile,
// unless Options.ClusterName or Options.TrustAnnotations is set.
//
// Package fleet connects the clusters, and documents how it follows changes of
// profiles, credentials and networks.
package clusterinventoryapi
