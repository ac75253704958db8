// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Package register adds clusters to a hub that has no cluster manager, and removes
// them again. The command mc-credential is a thin layer over it.
//
//	result, err := register.Register(ctx, register.Options{
//		Hub: hubConfig, Namespace: "fleet", Name: "c1",
//		Member: memberConfig, Rules: rules, // what controllers may do in the member
//	})
//
// [Register] creates a ServiceAccount and its permissions in the member, and a
// ClusterProfile (KEP-4322) in the hub. Its access provider (KEP-5339) is one of
//
//   - [AccessTokenSecret]: a token of the member's ServiceAccount is stored in a Secret
//     of the hub, for the plugin token-secret. [Rotate] renews it.
//   - [AccessOIDC]: the member trusts the hub as an OpenID Connect issuer, and accepts
//     tokens of a ServiceAccount of the hub. No secret is stored anywhere.
//     [AuthenticationConfiguration] returns what the member's API server needs for that.
//
// [Unregister] removes what Register has created.
//
// # What it promises
//
// All functions can be called again: after an error, or when the process was killed
// between two requests, the same call completes the work. Before Register writes
// anything, it lets both API servers validate all that it can. It writes in an order in
// which no one can use what is not complete: permissions, credential, profile, and the
// profile's access providers last. Unregister works in the opposite order.
//
// Only objects of the same registration are changed or deleted. They have the label
// [LabelRegistration]. Others of the same name are an error, [ErrNotOwned].
//
// Neither results nor errors contain tokens.
//
// # Permissions
//
// In the hub, Register needs to get the namespace of the profile; to get, list, create
// and patch clusterprofiles, and to patch clusterprofiles/status; to get, create and
// patch secrets in the namespace of the Secret; and for AccessOIDC to create
// serviceaccounts/token. In the member it needs to be an administrator, as it grants
// permissions. Rotate needs to get, list and update Secrets in the hub, and no
// permissions in members: each ServiceAccount may request tokens for itself.
package register
