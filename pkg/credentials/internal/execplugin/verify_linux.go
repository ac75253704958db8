// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package execplugin

import (
	"fmt"
	"os"
	"os/exec"
)

// pin makes the command execute the open file, even if another one now has its
// path. That needs /proc, and is not possible for scripts: their
// interpreter opens them by path.
func pin(command *exec.Cmd, file *os.File) {
	if isScript(file) {
		return
	}
	path := fmt.Sprintf("/proc/self/fd/%d", file.Fd())
	if _, err := os.Stat(path); err == nil {
		command.Path = path // Args[0] stays
	}
}

func isScript(file *os.File) bool {
	var start [2]byte
	n, _ := file.ReadAt(start[:], 0)
	return string(start[:n]) == "#!"
}
