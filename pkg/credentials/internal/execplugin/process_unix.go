// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package execplugin

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// ownGroup puts the command into a process group of its own. It returns a function
// that kills the group.
func ownGroup(command *exec.Cmd) (kill func() error) {
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	dieWithThread(command.SysProcAttr)
	return func() error {
		err := syscall.Kill(-command.Process.Pid, syscall.SIGKILL)
		if errors.Is(err, syscall.ESRCH) {
			return os.ErrProcessDone
		}
		return err
	}
}

// reapTimeout limits the wait for killed processes. Only one that the kernel holds
// up, such as in a call to a file server, takes longer.
const reapTimeout = time.Second

// reapGroup waits for what is left of the command's process group, which must be
// killed already, and the command waited for. If this process is the init process of
// a container, or a subreaper, it has become the parent of those processes, and
// they would stay zombies. Otherwise it has no children in the group. Children
// outside of the group are left to those who wait for them.
func reapGroup(command *exec.Cmd) {
	group := command.Process.Pid
	deadline := time.Now().Add(reapTimeout)
	for {
		switch pid, err := syscall.Wait4(-group, nil, syscall.WNOHANG, nil); {
		case err != nil && !errors.Is(err, syscall.EINTR): // ECHILD
			return
		case pid == 0:
			if time.Now().After(deadline) {
				return
			}
			time.Sleep(time.Millisecond)
		}
	}
}
