// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Package credentials connects to the cluster of a ClusterProfile (KEP-5339).
//
// The profile lists access providers, which can reach its cluster. The provider
// file, written by the operator of the controller, defines which of them may be
// used and which plugin obtains the credential; see package providerfile. A
// [Resolver] combines the two:
//
//	resolver, err := credentials.New(credentials.Options{
//		ProviderFile: "/etc/rollcall/providers.yaml",
//		PluginDirs:   []string{"/plugins"},
//	})
//	...
//	access, err := resolver.Resolve(ctx, profile)
//	defer access.Release()
//	client, err := kubernetes.NewForConfig(access.RESTConfig())
//
// [FromRESTConfig] makes an [Access] of an existing configuration.
//
// # What it promises
//
//   - Resolve is quick: it runs no plugin. The first request does.
//   - Accesses with the same plugin run share one credential. It is renewed
//     before it expires while there are requests, is never sent after its expiry,
//     and is renewed once for all requests that a server refuses with 401; these
//     are then repeated once.
//   - A plugin that hangs is killed with all its children. One that fails is run
//     again with a backoff, and the old credential is used while it is valid.
//   - A profile can choose only what the provider file allows. The plugin run of
//     one profile gets nothing of another profile.
//   - Tokens and keys are in no error, log line or printed value.
//   - [Access.Switch] moves all clients to another endpoint or credential. A
//     request that may have reached a server is repeated only if it just reads.
//   - After [Access.Release] of the last user, and after [Resolver.Close], no
//     goroutine, process or connection is left.
//
// # Goroutines
//
// Renewal needs no timer: a request that finds its credential due (after about
// 80 % of its lifetime) is sent with it, and starts the run that replaces it. A
// thousand idle clusters have no goroutine and no plugin run. In return, the
// first request after an idle time longer than the credential's lifetime waits
// for the plugin.
//
// # What it never does
//
// It does not look up plugins in PATH or in the working directory. It sends no
// credential to a host that the profile does not name, nor over plain HTTP
// unless the provider allows it. It does not open a file that a profile names.
package credentials
