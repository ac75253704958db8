// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package plugintest

import "os/exec"

// withoutTerminal returns what kills the command.
func withoutTerminal(command *exec.Cmd) (kill func() error) {
	return func() error { return command.Process.Kill() }
}
