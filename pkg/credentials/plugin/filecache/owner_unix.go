// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package filecache

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// checkOwner returns an error if another user owns the file, or its mode gives
// other users any of these permissions.
func checkOwner(info fs.FileInfo, permissions fs.FileMode) error {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if ok && int64(stat.Uid) != int64(os.Geteuid()) || info.Mode().Perm()&permissions != 0 {
		return errors.New("other users own it or have permissions on it")
	}
	return nil
}
