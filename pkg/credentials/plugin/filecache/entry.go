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

// entry is the content of a file, whose modification time is the expiry.
type entry struct {
	Obtained  time.Time `json:"obtained"`
	KeptUntil time.Time `json:"keptUntil,omitzero"` // fresh until then, as its renewal has failed
	plugin.Credential
}

// isFresh reports whether the credential may still be returned. A time of
// obtaining in the future means that a clock was wrong. The entry may be nil.
func (e *entry) isFresh(now time.Time, c *Cache) bool {
	switch {
	case e == nil || now.Before(e.Obtained):
		return false
	case c.Keep != nil && now.Before(e.KeptUntil) && e.canBeKept(now):
		return true
	}
	until := e.Obtained.Add(c.MaxAge)
	if !e.Expiry.IsZero() {
		lifetime := e.Expiry.Sub(e.Obtained)
		due := e.Obtained.Add(time.Duration(float64(lifetime) * usedFor))
		if c.MaxAge == 0 || due.Before(until) {
			until = due
		}
	}
	return now.Before(until)
}

// isFrom reports whether the credential was obtained since the time and is still valid.
// The entry may be nil.
func (e *entry) isFrom(since, now time.Time) bool {
	return e != nil && e.Obtained.After(since) && !now.Before(e.Obtained) && (e.Expiry.IsZero() || now.Before(e.Expiry))
}

// canBeKept reports whether the credential is valid for a while. The entry may be nil.
func (e *entry) canBeKept(now time.Time) bool {
	return e != nil && !e.Expiry.IsZero() && now.Before(e.Expiry.Add(-keptMargin))
}

// load returns nil unless the file has a credential that can be trusted.
func load(path string) *entry {
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
	if json.NewDecoder(io.LimitReader(file, maxEntry)).Decode(&e) != nil || e.Token == "" && len(e.ClientKey) == 0 {
		return nil
	}
	return &e
}

// store replaces the file of an entry.
func store(path string, e *entry) error {
	data, err := json.Marshal(e)
	if err != nil {
		return err
	}
	end := e.Expiry
	if end.IsZero() {
		end = e.Obtained.Add(keptFor)
	}
	if err := replace(path, data, end); err != nil {
		return err
	}
	_ = os.Remove(path + failureSuffix)
	return nil
}

// replace replaces a file atomically. The temporary file has mode 0600 from the
// start.
func replace(path string, data []byte, modified time.Time) (err error) {
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
		err = os.Chtimes(file.Name(), time.Time{}, modified)
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
