// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package filecache

import (
	"io/fs"
	"os"
	"syscall"
)

// ownAlone returns an error where the file belongs to somebody else, or its mode
// gives others the rights.
func ownAlone(info fs.FileInfo, rights fs.FileMode) error {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok && int64(stat.Uid) != int64(os.Geteuid()) {
		return errOthers
	}
	if info.Mode().Perm()&rights != 0 {
		return errOthers
	}
	return nil
}
