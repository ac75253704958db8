// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Package realfleet sets up a hub and members on real control planes, each a
// kube-apiserver and an etcd, as a cluster manager would: service accounts with
// minimal permissions, revocable tokens, ClusterProfiles. The quickstart and the
// tests across packages use it.
package realfleet
