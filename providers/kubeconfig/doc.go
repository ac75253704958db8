// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Package kubeconfig provides the clusters of kubeconfigs in Secrets of a management
// cluster.
//
//	provider := kubeconfig.New(kubeconfig.Options{Namespace: "clusters"})
//	…
//	mgr, err := mcmanager.New(ctrl.GetConfigOrDie(), provider, mcmanager.Options{})
//
// The management cluster is the manager's local cluster unless Options.Hub is set. The
// manager starts the provider. A cluster is a Secret with the label
// sigs.k8s.io/multicluster-runtime-kubeconfig=true in the namespace, and has the
// Secret's name. The current context of the kubeconfig is used.
//
// The provider needs permission to list and watch Secrets in that namespace, and reads
// only those with the label.
//
// A Secret cannot make the controller run commands or read files, nor turn off the
// verification of certificates, unless Options.Kubeconfig allows it. When the content of
// a Secret changes, the new connection is tried beside the one in use, which stays if the
// new one cannot be used: package fleet documents that and the status that shows it.
package kubeconfig
