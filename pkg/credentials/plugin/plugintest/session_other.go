// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package plugintest

import "os/exec"

// startInSession returns a function that kills the command.
func startInSession(command *exec.Cmd) (kill func() error) {
	return func() error { return command.Process.Kill() }
}
