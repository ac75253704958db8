// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Package sources opens the inventory that the flag --from selects: the ClusterProfiles of
// a hub, or what a provider finds. Every command that reads profiles uses it.
package sources
