// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package main

import "os/exec"

// ownGroup returns a function that ends the program.
func ownGroup(command *exec.Cmd) (terminate func() error) {
	return func() error { return command.Process.Kill() }
}
