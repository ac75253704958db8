// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main

import (
	"os/exec"
	"syscall"
)

// ownGroup keeps a Ctrl-C in the terminal away from the program, which is
// stopped in its turn. The function that it returns asks it, and what it
// started, to end.
func ownGroup(command *exec.Cmd) (terminate func() error) {
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGTERM) }
}
