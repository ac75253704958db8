// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Controlplane prints a folder that holds kube-apiserver and etcd, for tests
// that need a real API server. It takes the first of
//
//   - the folder that KUBEBUILDER_ASSETS names,
//   - the cache in the user's cache folder, keyed by version and platform,
//   - what setup-envtest downloads, any patch release of the pinned minor one,
//   - what the go command builds from source, with nothing but a module proxy.
//
// The last two fill the cache, so that they run once per machine and version.
// The folder is all that it writes to standard output:
//
//	export KUBEBUILDER_ASSETS="$(go -C hack/controlplane run .)"
//
// The versions of Kubernetes, etcd and setup-envtest are those of this
// module's go.mod and stand nowhere else.
//
// Several processes may run it at once: one prepares the binaries, the others
// wait for them. A run that is interrupted leaves nothing behind that a later
// one would take for a finished binary.
package main
