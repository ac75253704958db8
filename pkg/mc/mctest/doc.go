// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Package mctest runs Kubernetes API servers inside a test: hundreds of them in
// one process, without a binary, each with its own address, certificates,
// tokens and objects, and each able to fail in the ways that clusters do.
//
//	func TestSurvivesAnOutage(t *testing.T) {
//		fleet := mctest.NewFleet(t, 3, mctest.Options{Objects: []client.Object{configMap}})
//		eu := fleet.Cluster(1)
//		startController(t, eu.Config()) // what is tested
//
//		eu.Fault(mctest.Hang)                    // answers nothing from now on
//		eu.Clear()                               // answers again
//		eu.Fault(mctest.Forbidden.On("secrets")) // one resource only
//		if n := eu.OpenWatches("configmaps"); n != 1 {
//			t.Errorf("%d watches are open", n)
//		}
//	}
//
// # What a cluster does
//
// Clusters speak HTTPS and HTTP/2 on loopback. They serve every type of
// Kubernetes that client-go knows, those of [Options].Scheme, and any
// CustomResourceDefinition from the moment it is created. Objects behave as in
// a real API server as far as clients, caches, informers and leader election
// can tell: resource versions and conflicts, generateName, generation,
// finalizers, preconditions, the status subresource, all four kinds of patch,
// selectors, lists in pages, watches that resume, expire, carry bookmarks and
// stream the initial list. A suite of tests runs against both this server and a
// real one, so that the two cannot drift apart.
//
// # What it does not do
//
//   - No admission, no authorization (a [Fault] may forbid), no webhooks.
//   - No validation or defaulting beyond metadata: an invalid spec is stored.
//     Unknown fields of Go types are dropped, never rejected; those of custom
//     resources are kept.
//   - No controllers, and so no garbage collection: owner references and
//     propagation policies do nothing. One controller is imitated: a namespace
//     that is deleted takes its content with it.
//   - No conversion: the versions of a kind show the same fields. Core and
//     events.k8s.io Events are the exception.
//   - Fields are tracked (metadata.managedFields) from the first server-side
//     apply on, not from creation on. Types of [Options].Scheme that have no
//     CustomResourceDefinition are applied without a schema, so that each list
//     in them has one owner.
//   - No Table output, no OpenAPI, no subresources but status, a service
//     account's token and those that finish namespaces and certificate
//     signing requests: no logs, exec, proxy, scale or eviction.
//   - Built-in kinds that have no stable version are not served, nor are reviews
//     other than those of the caller itself.
//   - Answers are in JSON, and in protobuf only where a client takes nothing
//     else; watches are in JSON always.
//   - Pods are deleted at once; there is no kubelet to wait for.
package mctest
