// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Package fieldindex adds field indexes to the caches of clusters when they are
// first used.
//
// controller-runtime starts an informer for each index. A cluster that does not
// serve the kind, or forbids it, then has a cache that cannot be indexed or never
// syncs. A [Cluster] sends no request for an index: a List that uses the index adds
// it to the informer of the kind, which is started if there is none. If that fails,
// the List fails, the cluster stays usable, and the next List tries again.
//
//	indexes := &fieldindex.Set{}
//	cl = fieldindex.New(cl, `cluster "eu"`, indexes)
//	err := indexes.Add(fieldindex.Index{Object: &corev1.Pod{}, Field: "spec.nodeName", Extract: nodeName})
package fieldindex
