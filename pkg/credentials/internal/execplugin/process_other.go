// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package execplugin

import "os/exec"

// ownGroup returns a function that kills the command, but not its children: there
// are no process groups.
func ownGroup(command *exec.Cmd) (kill func() error) {
	return func() error { return command.Process.Kill() }
}

// reapGroup does nothing: only Unix has zombies.
func reapGroup(*exec.Cmd) {}
