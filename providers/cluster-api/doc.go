// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Package clusterapi provides the clusters of Cluster API.
//
//	provider := clusterapi.New(clusterapi.Options{})
//	…
//	mgr, err := mcmanager.New(ctrl.GetConfigOrDie(), provider, mcmanager.Options{})
//
// The management cluster is the manager's local cluster unless Options.Hub is set. The
// manager starts the provider. A cluster is a Cluster of cluster.x-k8s.io, in v1beta2, or
// in v1beta1 where only that is served. Its name is "namespace/name", and its kubeconfig
// is the key "value" of the Secret "NAME-kubeconfig" with the label
// cluster.x-k8s.io/cluster-name. Both are watched: a new kubeconfig is used at once.
//
// The provider needs permission to list and watch Clusters, and Secrets in the same
// namespaces. It reads only Secrets with the label.
//
// # When clusters are connected
//
//   - A Cluster is connected once its control plane is initialized. It then stays
//     connected, whatever becomes of its conditions: the probes of Connection decide.
//   - A paused Cluster stays as it is, connected or not.
//   - A Cluster that is being deleted stays connected, so that controllers can remove
//     finalizers in it, until its control plane is gone: the condition Deleting has the
//     reason WaitingForInfrastructureDeletion or DeletionCompleted, or the Secret or the
//     Cluster was removed. It is not connected again after that.
//   - If the Secret of a Cluster that is not being deleted is removed, the current
//     connection is kept and the status shows AccessUpdateFailed.
//
// A kubeconfig cannot make the controller run commands or read files, nor turn off the
// verification of certificates, unless Options.Kubeconfig allows it. A new connection is
// tried beside the one in use, which stays if the new one cannot be used: package fleet
// documents that and the status that shows it.
package clusterapi
