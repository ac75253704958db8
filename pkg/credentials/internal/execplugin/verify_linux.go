// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package execplugin

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// identity changes with the content of a file, as the kernel sets the time of
// the last change of the file or its metadata.
type identity struct {
	device, inode     uint64
	size              int64
	modified, changed syscall.Timespec
}

// identify returns the file's identity and when it changed last, or false if these
// are not known.
func identify(file *os.File) (identity, time.Time, bool) {
	info, err := file.Stat()
	if err != nil {
		return identity{}, time.Time{}, false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return identity{}, time.Time{}, false
	}
	// Writes through a mapping change the times late: others must not be able to write.
	if owner := int(stat.Uid); owner != 0 && owner != os.Geteuid() || stat.Mode&0o022 != 0 {
		return identity{}, time.Time{}, false
	}
	device := uint64(stat.Dev) //nolint:unconvert // it has 32 bits on some architectures
	return identity{device, stat.Ino, stat.Size, stat.Mtim, stat.Ctim}, time.Unix(stat.Ctim.Unix()), true
}

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
