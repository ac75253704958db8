// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Package clusterinventoryapi provides the clusters that the ClusterProfiles of
// a hub list (KEP-4322), opened by credential plugins (KEP-5339).
//
//	resolver, err := credentials.New(credentials.Options{ProviderFile: "providers.json"})
//	…
//	provider, err := clusterinventoryapi.New(clusterinventoryapi.Options{Credentials: resolver})
//	…
//	mgr, err := mcmanager.New(ctrl.GetConfigOrDie(), provider, mcmanager.Options{})
//
// The hub is the manager's local cluster unless Options.Hub names another. The
// manager starts the provider. A cluster's name is "namespace/name" of its
// profile, whatever its annotations say, unless Options.ClusterName or
// Options.TrustAnnotations have it otherwise.
//
// What happens to clusters as profiles, credentials and networks change is
// told by pkg/mc/fleet, which does all the work.
package clusterinventoryapi
