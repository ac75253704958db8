// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package execplugin

import (
	"errors"
	"fmt"
	"strings"

	"github.com/rollcall-dev/rollcall/pkg/credentials/internal/errdefs"
)

// RunError is credentials.RunError.
type RunError struct {
	Command     string
	ExitCode    int
	Stderr      string
	InstallHint string
	Err         error
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

// missingError is an ErrPluginMissing that names the files which are missing.
type missingError struct{ files string }

func (e *missingError) Error() string { return errdefs.ErrPluginMissing.Error() + ": " + e.files }

func (e *missingError) Unwrap() error { return errdefs.ErrPluginMissing }
