// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package plugintest

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
)

// withoutTerminal puts the command into a session of its own, which has no
// terminal, and returns what kills all of it.
func withoutTerminal(command *exec.Cmd) (kill func() error) {
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return func() error {
		err := syscall.Kill(-command.Process.Pid, syscall.SIGKILL)
		if errors.Is(err, syscall.ESRCH) {
			return os.ErrProcessDone
		}
		return err
	}
}
