// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Package mctest is a test kit for controllers. It runs Kubernetes API servers
// inside a test: hundreds of them in one process, without a binary, each with
// its own address, certificates, tokens and objects, and each can fail in the
// ways that clusters do.
//
//	func TestOutage(t *testing.T) {
//		fleet := mctest.NewFleet(t, 3, mctest.Options{Objects: []client.Object{configMap}})
//		eu := fleet.Cluster(1)
//		mctest.StartManager(t, newManager(t, eu.Config())) // what is tested
//
//		eu.Fault(mctest.Hang)                    // requests hang
//		eu.Clear()                               // requests are answered again
//		eu.Fault(mctest.Forbidden.On("secrets")) // only one resource fails
//		if n := eu.OpenWatches("configmaps"); n != 1 {
//			t.Errorf("%d watches are open", n)
//		}
//	}
//
// [StartManager], [ManagerOptions] and [Timeout] are for tests of managers on
// any kind of cluster.
//
// # What a cluster does
//
// Clusters speak HTTPS and HTTP/2 on loopback. They serve every type of
// Kubernetes in client-go, those of [Options].Scheme, and any
// CustomResourceDefinition from the moment it is created. For clients, caches,
// informers and leader election, objects behave as in a real API server:
// resource versions and conflicts, generateName, generation, finalizers,
// preconditions, the status subresource, all four kinds of patch, selectors,
// lists in pages, watches that resume, expire, send bookmarks and stream the
// initial list. The same tests run against this server and a real one.
//
// # What it does not do
//
//   - No admission, no authorization (but see [Forbidden]), no webhooks.
//   - No validation or defaulting beyond metadata: an invalid spec is stored.
//     Unknown fields of Go types are dropped, never rejected; those of custom
//     resources are kept.
//   - No controllers, and so no garbage collection: owner references and
//     propagation policies have no effect. One controller is imitated: the
//     content of a namespace is deleted with it.
//   - No conversion: the versions of a kind have the same fields. Core and
//     events.k8s.io Events are the exception.
//   - Fields are tracked (metadata.managedFields) from the first server-side
//     apply on, not from creation on. Types of [Options].Scheme without a
//     CustomResourceDefinition are applied without a schema, so that each list
//     in them has one owner.
//   - No Table output, no OpenAPI, no subresources but status, a service
//     account's token and those that finish namespaces and certificate
//     signing requests: no logs, exec, proxy, scale or eviction.
//   - Built-in kinds without a stable version are not served, and of reviews
//     only those of the caller itself.
//   - Responses are in JSON, and in protobuf only where a client accepts nothing
//     else; watches are always in JSON.
//   - Pods are deleted at once; there is no kubelet to wait for.
package mctest
