// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Package tokensecret is a credential plugin that reads a bearer token from a
// Secret in the hub.
//
// The profile says which Secret, in its config for the plugin:
//
//	{"secretRef": {"namespace": "clusters", "name": "c1", "key": "token"}}
//
// The key is "token" and the namespace is the plugin's own where they are left
// out. {"clusterName": "c1"} stands for {"secretRef": {"name": "c1"}}. Which
// namespaces and Secrets may be read at all is said by flags, since whoever
// writes a profile could otherwise have any Secret sent to a server of their
// choice.
package tokensecret
