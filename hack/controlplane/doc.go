// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Controlplane prints a folder with kube-apiserver, etcd and kubectl, for tests that
// need a real API server. It uses the first of
//
//   - the folder that KUBEBUILDER_ASSETS names;
//   - the user's cache folder, by version and platform;
//   - a download by setup-envtest, of any patch release of the pinned minor version;
//   - a build from source by the go command, which needs only a module proxy.
//
// The last two fill the cache with what it does not have, so that they run once per
// machine and version.
// Standard output has nothing but the folder:
//
//	export KUBEBUILDER_ASSETS="$(go -C hack/controlplane run .)"
//
// The versions of Kubernetes, etcd and setup-envtest are those in this module's
// go.mod.
//
// If several processes run concurrently, one prepares the binaries and the others
// wait. An interrupted run leaves no incomplete binary in the cache.
package main
