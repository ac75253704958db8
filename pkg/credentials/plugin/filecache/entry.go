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

	// maxEntry is more than any credential takes.
	maxEntry = 4 << 20
)

// entry is what is in a file. The file's modification time is the expiry.
type entry struct {
	Obtained          time.Time `json:"obtained"`
	Expiry            time.Time `json:"expiry"`
	Token             string    `json:"token,omitempty"`
	ClientCertificate []byte    `json:"clientCertificate,omitempty"`
	ClientKey         []byte    `json:"clientKey,omitempty"`
}

// fresh tells whether the credential is still to be handed out. One that was
// obtained in the future is of a clock that was wrong.
func (e *entry) fresh(now time.Time) bool {
	lifetime := e.Expiry.Sub(e.Obtained)
	until := e.Obtained.Add(time.Duration(float64(lifetime) * usedFor))
	return lifetime > 0 && !now.Before(e.Obtained) && now.Before(until) &&
		(e.Token != "" || len(e.ClientKey) > 0)
}

// load returns nil where there is no fresh credential that one may trust.
func load(path string, now time.Time) *plugin.Credential {
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxEntry || ownAlone(info, 0o077) != nil {
		return nil
	}
	file, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer func() { _ = file.Close() }()
	var e entry
	if json.NewDecoder(io.LimitReader(file, maxEntry)).Decode(&e) != nil || !e.fresh(now) {
		return nil
	}
	return &plugin.Credential{
		Token:             e.Token,
		ClientCertificate: e.ClientCertificate,
		ClientKey:         e.ClientKey,
		Expiry:            e.Expiry,
	}
}

// store replaces the file at once. The temporary one has mode 0600 from the
// start, and a name that no sweep knows.
func store(path string, c *plugin.Credential, obtained time.Time) (err error) {
	data, err := json.Marshal(entry{
		Obtained:          obtained.Round(0),
		Expiry:            c.Expiry.Round(0),
		Token:             c.Token,
		ClientCertificate: c.ClientCertificate,
		ClientKey:         c.ClientKey,
	})
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

// expired tells whether the file's credential is of no use any more.
func expired(path string, now time.Time) bool {
	info, err := os.Lstat(path)
	return err == nil && info.ModTime().Before(now)
}
