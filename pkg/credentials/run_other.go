// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package credentials

import "os/exec"

// ownGroup returns what kills the command. Its children are not reached where
// there are no process groups.
func ownGroup(command *exec.Cmd) (kill func() error) {
	return func() error { return command.Process.Kill() }
}
