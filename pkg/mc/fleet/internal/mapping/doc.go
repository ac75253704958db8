// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Package mapping has REST mappers that share their data: a thousand clusters with
// the same resources keep them in memory once.
//
//	cluster.New(config, func(o *cluster.Options) { o.MapperProvider = mapping.New })
//
// A [Mapper] belongs to one cluster and is small. Its data is immutable, and is kept
// once per process and content, on three levels:
//
//   - Discovery documents, by their bytes. A document that another cluster has sent
//     before is not decoded again.
//   - The resources of a group version, by the fields that mapping uses. Clusters
//     that differ in one CustomResourceDefinition share all other group versions.
//     The order of resources, verbs, short names and categories do not matter.
//   - The catalog of a cluster, by its group versions and their order.
//
// A value is freed when the last cluster that uses it is gone.
//
// # Lookups
//
// Results and errors are those of controller-runtime's mapper. Where that one
// chooses a group or version at random, this one uses the server's order.
//
//   - The first lookup sends the two requests of aggregated discovery. Group
//     versions without resources there, because the server is old or an aggregated
//     API is stale, are requested one by one when a lookup needs them.
//   - A lookup that finds nothing sends these requests again before it fails: a kind
//     is found as soon as discovery lists it. This happens five times in a row, then
//     once a second for the same lookup; other lookups fail at once.
//   - At most one request of a kind is under way to a cluster. Lookups that find
//     nothing wait for it, others do not. A request that began before a lookup does
//     not prove that a kind is missing.
//   - A kind that was removed is known until the next request. Until then the API
//     server responds with 404.
//   - An aggregated API that is unavailable only affects lookups in its group. Its
//     known kinds stay known. A lookup that finds nothing because of it fails with
//     apiutil.ErrResourceDiscoveryFailed, which is not a "no match" error.
package mapping
