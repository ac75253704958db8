// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package filecache

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/rollcall-dev/rollcall/pkg/credentials/plugin"
)

const (
	entrySuffix = ".json"
	lockSuffix  = ".lock"

	temporaryPrefix = ".new-"

	// maxEntry is more than the size of any credential.
	maxEntry = 4 << 20
)

// entry is the content of a file, whose modification time is the expiry.
type entry struct {
	Obtained time.Time `json:"obtained"`
	plugin.Credential
}

// isFresh reports whether the credential may still be returned. A time of
// obtaining in the future means that a clock was wrong.
func (e *entry) isFresh(now time.Time) bool {
	lifetime := e.Expiry.Sub(e.Obtained)
	until := e.Obtained.Add(time.Duration(float64(lifetime) * usedFor))
	return lifetime > 0 && !now.Before(e.Obtained) && now.Before(until) &&
		(e.Token != "" || len(e.ClientKey) > 0)
}

// load returns nil unless the file has a fresh credential that can be trusted.
func load(path string, now time.Time) *plugin.Credential {
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxEntry || checkOwner(info, 0o077) != nil {
		return nil
	}
	file, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer func() { _ = file.Close() }()
	var e entry
	if json.NewDecoder(io.LimitReader(file, maxEntry)).Decode(&e) != nil || !e.isFresh(now) {
		return nil
	}
	return &e.Credential
}

// store replaces the file atomically. The temporary file has mode 0600 from the
// start.
func store(path string, c *plugin.Credential, obtained time.Time) (err error) {
	data, err := json.Marshal(entry{Obtained: obtained.Round(0), Credential: *c})
	if err != nil {
		return err
	}
	file, err := os.CreateTemp(filepath.Dir(path), temporaryPrefix+"*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(file.Name())
		}
	}()
	_, err = file.Write(data)
	if closeErr := file.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = os.Chtimes(file.Name(), time.Time{}, c.Expiry)
	}
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	return err
}

// isExpired reports whether the file's credential has expired.
func isExpired(path string, now time.Time) bool {
	info, err := os.Lstat(path)
	return err == nil && info.ModTime().Before(now)
}
