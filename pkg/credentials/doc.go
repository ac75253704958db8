// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Package credentials turns a ClusterProfile into a connection (KEP-5339).
//
// The profile says which ways there are to reach its cluster; the provider
// file, written by whoever runs the controller, says which of them may be used
// and which plugin obtains the credential. A [Resolver] brings the two together:
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
// # What it promises
//
//   - Resolve is quick: it runs no plugin. The first request does.
//   - Accesses whose plugin run would be the same share one credential. It is
//     renewed before it expires while requests go on, is never sent after its
//     expiry, and is renewed once for all requests that the server answered
//     with 401; those are then repeated once.
//   - A plugin that hangs is killed with all its children; one that fails is
//     not run again at once, and the old credential serves while it is valid.
//   - A profile never reaches beyond what the provider file lets it choose.
//     Nothing of one profile is ever seen by another's plugin run.
//   - Tokens and keys are in no error, log line or printed value.
//   - After [Access.Release] of the last user, and after [Resolver.Close], no
//     goroutine, process or connection is left.
//
// # Goroutines
//
// Renewal needs no timer: a request that finds its credential due (at about 80 %
// of its lifetime) is served with it and sets off the one run that replaces
// it. A thousand idle clusters cost no goroutine and no plugin run. The price is
// that the first request after a silence longer than the credential's life waits
// for the plugin.
//
// # What it never does
//
// It looks for no plugin in PATH or in the working directory, sends no
// credential to a host that the profile does not name, nor over plain HTTP
// unless the provider allows that, and follows no file path that a profile
// gives.
package credentials
