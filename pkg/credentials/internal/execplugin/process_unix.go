// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package execplugin

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
)

// ownGroup puts the command into a process group of its own. It returns a function
// that kills the group.
func ownGroup(command *exec.Cmd) (kill func() error) {
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return func() error {
		err := syscall.Kill(-command.Process.Pid, syscall.SIGKILL)
		if errors.Is(err, syscall.ESRCH) {
			return os.ErrProcessDone
		}
		return err
	}
}
