// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"fmt"

	"github.com/rollcall-dev/rollcall/pkg/credentials/internal/errdefs"
	"github.com/rollcall-dev/rollcall/pkg/credentials/internal/execplugin"
	"github.com/rollcall-dev/rollcall/pkg/inventory"
)

// Causes of errors, for errors.Is. Errors of Resolve, and of requests through a
// managed rest.Config, are an *Error around one of these.
var (
	// ErrNoProvider means that the profile lists no access provider which the
	// resolver knows.
	ErrNoProvider = errdefs.ErrNoProvider

	// ErrInvalidProfile means that the profile's access provider cannot be used:
	// for example, its server is not an https URL.
	ErrInvalidProfile = errdefs.ErrInvalidProfile

	// ErrDenied means that something is not allowed. The profile asks for what
	// its provider does not allow: a server, an environment variable, a
	// connection without TLS verification. Or the plugin is not one of
	// Options.AllowedCommands.
	ErrDenied = errdefs.ErrDenied

	// ErrPluginMissing means that the plugin's executable does not exist or may
	// not be executed, or that the program has no such plugin of its own. The
	// chain has a *RunError with the provider's hint on how to install it.
	ErrPluginMissing = errdefs.ErrPluginMissing

	// ErrPluginFailed means that the plugin ended with an error. The chain has
	// a *RunError with its exit code and the end of its standard error.
	ErrPluginFailed = errdefs.ErrPluginFailed

	// ErrTimeout means that the plugin did not end in time and was killed.
	ErrTimeout = errdefs.ErrTimeout

	// ErrInvalidOutput means that the plugin succeeded, but its output is not
	// a usable ExecCredential.
	ErrInvalidOutput = errdefs.ErrInvalidOutput

	// ErrExpired means that the credential of the plugin's output had already
	// expired. Every ErrExpired is an ErrInvalidOutput too.
	ErrExpired = errdefs.ErrExpired

	// ErrNotPortable means that another process has no command to run: the
	// provider's plugin is in this process only.
	ErrNotPortable = errdefs.ErrNotPortable

	// ErrReleased means that a request came after its Access was released. It
	// was not sent. One that was under way then has an error of its connection,
	// as if the network had dropped it.
	ErrReleased = errdefs.ErrReleased

	// ErrClosed means that the resolver was closed. A request with this error
	// was not sent.
	ErrClosed = errdefs.ErrClosed
)

// Error is a failure for a profile and one of its providers.
type Error struct {
	// Profile is the profile's namespace and name.
	Profile inventory.Key

	// Provider is the name of the provider, or "" if none was chosen.
	Provider string

	// Err is the cause.
	Err error
}

// Error implements error.
func (e *Error) Error() string {
	if e.Provider == "" {
		return fmt.Sprintf("profile %s: %v", e.Profile, e.Err)
	}
	return fmt.Sprintf("profile %s: provider %q: %v", e.Profile, e.Provider, e.Err)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// RunError is a failed run of a plugin.
type RunError struct {
	// Command is the path of the executable, or the name of the plugin in this
	// process. If no plugin folder has it, the path is one in the first folder.
	Command string

	// ExitCode is the plugin's exit code, or -1 if there is none: it did not
	// start, or a signal ended it.
	ExitCode int

	// Stderr is the end of what the plugin wrote to its standard error: at most
	// 4 KiB, without control characters, with what looks like a secret redacted.
	Stderr string

	// InstallHint is the provider's hint on how to install the plugin, if that is
	// missing.
	InstallHint string

	// Err is the cause: ErrPluginMissing, ErrDenied, ErrPluginFailed, ErrTimeout
	// or ErrInvalidOutput, or an error around one of them.
	Err error
}

// Error implements error. The text is a single line.
func (e *RunError) Error() string { return (*execplugin.RunError)(e).Error() }

// Unwrap returns the cause.
func (e *RunError) Unwrap() error { return e.Err }
