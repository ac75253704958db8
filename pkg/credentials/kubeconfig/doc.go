// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Package kubeconfig connects to the clusters of kubeconfigs, which are input and not
// code: what they may do is decided by [Options], not by their authors.
//
//	resolver, err := kubeconfig.New(kubeconfig.Options{})
//	…
//	file, err := kubeconfig.Parse("Secret clusters/eu", "", secret.Data["kubeconfig"])
//	…
//	eu, err := file.Context("") // the current context
//	…
//	access, err := resolver.Access(profile, eu, nil)
//	defer access.Release()
//
// By default a kubeconfig runs no command, reads no file and cannot turn off the
// verification of certificates. [Options].Trusted allows what kubectl allows.
//
// Files that a kubeconfig names are read once and become part of the Access. A program
// that follows them makes a new Access, to which the old one is switched: [Context.Files]
// has their paths. Commands of users with exec are run by a credentials.Resolver, with
// its time limits.
//
// Errors are an *[Error]. They name the kubeconfig, the context, the user and the field,
// and contain no secret. An error in a user, a cluster or a context concerns only the
// contexts that use it.
package kubeconfig
