// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Package tokensecret is a credential plugin that reads a credential from a
// Secret in the hub: a bearer token, a client certificate, or a kubeconfig that
// contains one of them.
//
// The profile names the Secret in its config for the plugin:
//
//	{"secretRef": {"namespace": "clusters", "name": "c1", "key": "token"}}
//
// The default namespace is the plugin's own. The default key is the first of
// token, tls.crt, kubeconfig and value that the Secret has. "context" selects a
// context of a kubeconfig. {"clusterName": "c1"} is short for {"secretRef":
// {"name": "c1", "key": "token"}}, and {"name": "c1"}, with namespace, key and
// context, selects a Secret with a kubeconfig.
//
// Authors of profiles are not trusted. They could otherwise send any Secret to
// their own server. Therefore flags limit the namespaces and Secrets to read; the
// credential of a kubeconfig goes only to the server in the kubeconfig, with its
// certificate authority; and other credentials go only to the server in the
// Secret's annotation rollcall.dev/server. One without it is refused, unless the
// flag --any-server is set.
//
// With --request-token, the content of the Secret never leaves the plugin, which
// uses it to request a short-lived token from the member cluster.
package tokensecret
