// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Package namespace provides every namespace of one cluster as a cluster. It is for
// tests with hundreds of clusters, and for programs that treat namespaces as tenants:
//
//	cl, err := cluster.New(config)
//	…
//	provider := namespace.New(cl)
//	mgr, err := mcmanager.New(config, provider, mcmanager.Options{})
//	…
//	err = mgr.GetLocalManager().Add(cl) // runs the cluster
//
// A cluster has the name of its namespace. It is engaged until the namespace is gone:
// while that is Terminating, reconcilers go on.
//
// # What a cluster can access
//
// Its clients, caches, event handlers, indexers and event recorders act in its
// namespace only:
//
//   - Objects without a namespace get that of the cluster. Objects, keys and options with
//     another one are an [ErrOutsideNamespace], which names both.
//   - A List of all namespaces returns the objects of this one.
//   - Cluster-scoped objects can be read and watched, as all namespaces share them. To
//     write them is an ErrOutsideNamespace.
//   - Events about cluster-scoped objects are created in the namespace. Events about
//     objects of another one are dropped, and logged.
//
// This keeps programs from mistakes. It is no security boundary: GetConfig and
// GetHTTPClient are those of the underlying cluster.
//
// # What a namespace costs
//
// All namespaces share the informers, connections and health probe of the underlying
// cluster: one more namespace sends no request. With one controller it takes
// about 60 KiB of memory and 4 goroutines, and is engaged in less than a millisecond. Each
// event of a kind is compared once for each namespace that watches the kind.
//
// Programs that share an index between namespaces add it with the provider or the
// manager. An index function gets the objects of all namespaces; to add another function
// for the same field in another namespace is an error of the Lists that use it there.
package namespace
