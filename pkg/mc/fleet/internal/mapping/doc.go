// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Package mapping has REST mappers that share what they know: a thousand
// clusters that serve the same resources hold one description of them.
//
//	cluster.New(config, func(o *cluster.Options) { o.MapperProvider = mapping.New })
//
// A [Mapper] belongs to one cluster and is small. What it knows is immutable
// and found by content in one place for the whole process, on three levels:
//
//   - A discovery document, by its bytes: one that some cluster has sent before
//     is not even decoded.
//   - The resources of a group version, by what mapping needs of them. Clusters
//     that differ in one CustomResourceDefinition share all group versions but
//     one. The order of the resources, which older servers leave to chance, does
//     not matter, nor do verbs, short names and categories.
//   - The whole of a cluster, by its group versions and their order.
//
// Each is forgotten when the last cluster that uses it is.
//
// # Answers
//
// They are those of controller-runtime's mapper, with its errors, and where
// that one leaves the choice among several groups or versions to chance, this
// one takes the server's order.
//
//   - Nothing is asked before the first lookup, which then takes the two
//     requests of aggregated discovery. Group versions that these do not tell
//     of, because the server is an old one or an aggregated API is stale, are
//     asked for one by one when a lookup concerns them.
//   - A lookup that finds nothing has the cluster asked anew before it fails: a
//     kind is found from the moment that discovery tells of it. Five times in a
//     row, then once a second for the same question; in between it fails at once.
//   - At most one request of a kind is under way to a cluster. Lookups that find
//     nothing wait for it; all others go on with what is known. A request that
//     began before a lookup did is no proof that what it seeks is missing.
//   - What a cluster no longer serves stays known until the cluster is asked
//     anew for whatever reason; then it is gone. Meanwhile the API server
//     answers with 404.
//   - An aggregated API that is unavailable concerns lookups in its group alone.
//     What was known of it stays known. A lookup that finds nothing because of it
//     fails with apiutil.ErrResourceDiscoveryFailed, which is no "no match".
package mapping
