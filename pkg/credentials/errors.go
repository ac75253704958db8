// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"errors"
	"fmt"
	"strings"

	"github.com/rollcall-dev/rollcall/pkg/inventory"
)

// What can go wrong, told apart with errors.Is. Errors of Resolve, and of
// requests through a managed rest.Config, are an *Error around one of these.
var (
	// ErrNoProvider says that the profile lists no access provider which the
	// resolver knows.
	ErrNoProvider = errors.New("no matching provider")

	// ErrBadProfile says that the profile's access provider cannot be used as
	// it is: for example, its server is not an https URL.
	ErrBadProfile = errors.New("bad profile")

	// ErrDenied says that something is not allowed. The profile asks for what
	// its provider does not allow: a server, an environment variable, a
	// connection without TLS verification. Or the plugin is not one of
	// Options.AllowedCommands.
	ErrDenied = errors.New("denied")

	// ErrPluginMissing says that the plugin's executable is not there or may
	// not be executed, or that the program has no such plugin of its own. The
	// chain has a *RunError with the provider's hint on how to install it.
	ErrPluginMissing = errors.New("plugin missing")

	// ErrPluginFailed says that the plugin ended with an error. The chain has
	// a *RunError with its exit code and the end of its standard error.
	ErrPluginFailed = errors.New("plugin failed")

	// ErrTimeout says that the plugin did not end in time and was killed.
	ErrTimeout = errors.New("plugin timed out")

	// ErrBadAnswer says that the plugin ended well, but what it printed is
	// not a usable ExecCredential.
	ErrBadAnswer = errors.New("bad answer from plugin")

	// ErrExpired says that the plugin answered with a credential that had
	// expired already. Every ErrExpired is an ErrBadAnswer too.
	ErrExpired = fmt.Errorf("%w: credential has expired", ErrBadAnswer)

	// ErrNotPortable says that there is no command which another process could
	// run: the provider's plugin is in this process alone.
	ErrNotPortable = errors.New("no portable form")

	// ErrReleased says that a request came after its Access was released. It
	// was not sent. One that was under way then has an error of its connection,
	// as if the network had dropped that.
	ErrReleased = errors.New("access released")

	// ErrClosed says that the resolver was closed. A request with this error
	// was not sent.
	ErrClosed = errors.New("resolver closed")
)

// Error says for which profile, and by which of its providers, something
// failed. Err tells what.
type Error struct {
	// Profile is the profile's namespace and name.
	Profile inventory.Key

	// Provider is the name of the provider, or "" where none was chosen.
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

// RunError is a run of a plugin that gave no credential.
type RunError struct {
	// Command is the path of the executable, or the name of the plugin in this
	// process. Of one that is in no plugin folder it is the path in the first.
	Command string

	// ExitCode is the plugin's exit code, or -1 where there is none: it did
	// not start, or a signal ended it.
	ExitCode int

	// Stderr is the end of what the plugin wrote to its standard error: at most
	// 4 KiB, without control characters, with what looks like a secret
	// replaced.
	Stderr string

	// InstallHint is what the provider says about installing the plugin, where
	// that is missing.
	InstallHint string

	// Err is the cause: ErrPluginMissing, ErrDenied, ErrPluginFailed, ErrTimeout
	// or ErrBadAnswer, or an error around one of them.
	Err error
}

// Error implements error. The text is a single line.
func (e *RunError) Error() string {
	var text strings.Builder
	fmt.Fprint(&text, e.Err)
	if _, named := errors.AsType[*missingError](e.Err); !named {
		fmt.Fprintf(&text, ": %s", e.Command)
	}
	if e.ExitCode > 0 {
		fmt.Fprintf(&text, ": exit code %d", e.ExitCode)
	}
	if e.Stderr != "" {
		fmt.Fprintf(&text, ": %s", strings.Join(strings.Split(e.Stderr, "\n"), " | "))
	}
	if hint := strings.Join(strings.Fields(e.InstallHint), " "); hint != "" {
		fmt.Fprintf(&text, ": %s", hint)
	}
	return text.String()
}

// Unwrap returns the cause.
func (e *RunError) Unwrap() error { return e.Err }
