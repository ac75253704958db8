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

// startInSession gives the command a session of its own, without a terminal,
// and returns a function that kills the whole session.
func startInSession(command *exec.Cmd) (kill func() error) {
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return func() error {
		err := syscall.Kill(-command.Process.Pid, syscall.SIGKILL)
		if errors.Is(err, syscall.ESRCH) {
			return os.ErrProcessDone
		}
		return err
	}
}
