// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package filecache

import (
	"errors"
	"io"
	"os"
	"time"
)

// A file with the text of an error is beside that of the credential until one is stored.
const (
	failureSuffix = ".failed"
	maxFailure    = 16 << 10
)

// storeFailure stores the error for the processes that wait for the lock. Its
// modification time is when it happened.
func storeFailure(path string, failure error) {
	_ = replace(path+failureSuffix, []byte(failure.Error()), time.Now())
}

// failureSince returns the error that another process has had since the time, or nil.
func failureSince(path string, since time.Time) error {
	info, err := os.Lstat(path + failureSuffix)
	if err != nil || !info.Mode().IsRegular() || checkOwner(info, 0o077) != nil || !info.ModTime().After(since) {
		return nil
	}
	file, err := os.Open(path + failureSuffix)
	if err != nil {
		return nil
	}
	defer func() { _ = file.Close() }()
	text, err := io.ReadAll(io.LimitReader(file, maxFailure))
	if err != nil || len(text) == 0 {
		return nil
	}
	return errors.New(string(text))
}
