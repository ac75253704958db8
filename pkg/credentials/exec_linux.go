// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"fmt"
	"os"
	"os/exec"
)

// pin makes the command execute the open file, whatever has come to be at its
// path in the meantime. That is possible where there is /proc, and not for
// scripts: the interpreter opens them by their path.
func pin(command *exec.Cmd, file *os.File) {
	if isScript(file) {
		return
	}
	path := fmt.Sprintf("/proc/self/fd/%d", file.Fd())
	if _, err := os.Stat(path); err == nil {
		command.Path = path // Args[0] stays what it was
	}
}
