// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Package tokensecret is a credential plugin that reads a credential from a
// Secret in the hub: a bearer token, a client certificate, or a kubeconfig with
// either of them inline.
//
// The profile says which Secret, in its config for the plugin:
//
//	{"secretRef": {"namespace": "clusters", "name": "c1", "key": "token"}}
//
// The namespace is the plugin's own where it is left out, and the key then is
// the first of token, tls.crt, kubeconfig and value that there is. A context
// chooses one of a kubeconfig. {"clusterName": "c1"} stands for {"secretRef":
// {"name": "c1", "key": "token"}}, and {"name": "c1"}, with namespace, key and
// context, for a Secret with a kubeconfig.
//
// Whoever writes a profile is not trusted. Which namespaces and Secrets may be
// read at all is said by flags, since the author could otherwise have any Secret
// sent to a server of their choice; a kubeconfig's credential goes only to the
// server, and with the certificate authority, that the kubeconfig names; and any
// other only to the server of the Secret's annotation rollcall.dev/server, where
// there is one, which --require-server asks for.
//
// With --request-token, what the Secret holds never leaves the plugin: it is
// used to have the member cluster issue a token that lives for a short time.
package tokensecret
