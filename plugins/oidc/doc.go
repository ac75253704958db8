// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Package oidc is a credential plugin for member clusters whose API servers trust
// the hub as an OpenID Connect issuer. It requests a short-lived token of a
// ServiceAccount of the hub (TokenRequest) with the member's audience. No secret
// is stored anywhere.
//
// The profile names the audience in its config for the plugin:
//
//	{"audience": "https://c1.example.com:6443"}
//
// A member accepts only tokens with its own audience, so a token that one member
// receives is of no use at another one. Authors of profiles are not trusted: they
// could otherwise request a token for another member and have it sent to their
// own server. Therefore an audience belongs to one server, by default to the one
// that it is the URL of; the flag --allowed-audience sets others. The audiences of
// the hub's own API server are refused.
//
// With --token-file, the token comes from a projected volume of the pod, and no
// request is sent.
package oidc
