// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package kubeconfig

import "github.com/rollcall-dev/rollcall/pkg/credentials"

// Options define what kubeconfigs may do. The zero value is for those whose authors must
// not choose what this process runs and reads, such as in Secrets.
type Options struct {
	// Trusted allows what kubectl allows: users with auth-provider, commands in the
	// folders of PATH, any environment variable, files, and servers whose certificate is
	// not verified. It allows any command unless Exec.AllowedCommands is set. Set it only
	// if the authors of the kubeconfigs may do what this process may. Default: false.
	Trusted bool

	// Exec configures how commands of users with exec are run. Unless Trusted is set,
	// such users are refused if AllowedCommands is empty, and so are commands that are
	// not in it, and environment variables that decide what a program runs or reads (see
	// the documentation of credentials). The author of a kubeconfig chooses the
	// arguments and the server that gets the credential: allow a command only if that
	// does no harm. ProviderFile, Providers and Plugins must not be set.
	Exec credentials.Options

	// AllowPaths allows absolute paths of files, such as tokenFile and
	// client-certificate. A kubeconfig can then send the content of a file to a server
	// of its author's choice. Default: false, unless Trusted is set.
	AllowPaths bool

	// AllowInsecureSkipTLSVerify allows clusters with insecure-skip-tls-verify. An
	// attacker in the network can then read the credential. Default: false, unless
	// Trusted is set.
	AllowInsecureSkipTLSVerify bool
}
