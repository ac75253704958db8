// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Package kind provides the clusters of kind (https://kind.sigs.k8s.io) on this machine,
// with Docker, nerdctl or Podman as kind chooses them.
//
//	provider := kind.New(kind.Options{Prefix: "fleet-"})
//	…
//	mgr, err := mcmanager.New(ctrl.GetConfigOrDie(), provider, mcmanager.Options{})
//
// kind.New() provides all clusters. A cluster has the name that it has in kind. The
// manager starts the provider.
//
// # Noticing changes
//
// kind's library has no watch, and reading a kubeconfig with it takes eight commands of the
// engine, or more. So every second the provider runs a single one, which lists the IDs and the
// ports of the containers with kind's label. Only if these differ from the last ones, it
// lists the clusters, and reads the kubeconfigs of those whose containers are not the
// same: a cluster that was created, recreated under its name, stopped or started. It also
// reads those of clusters that the fleet cannot connect or that do not respond, at
// increasing intervals from 1 s to 30 s. Credentials that still work are not read again.
//
// That command takes 13 ms of CPU time with Docker, and the engine 1.5 ms: 1.5 % of one CPU.
// Options.Interval changes how often it runs.
//
// # Trust
//
// A kubeconfig cannot make the controller run commands or read files, nor turn off the
// verification of certificates. The provider needs access to the container engine, which
// usually means root on this machine: it is for development and tests.
//
// kind's library cannot interrupt a command. One that does not end keeps a goroutine, but
// neither other clusters nor the end of the provider wait for it.
package kind
