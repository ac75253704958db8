// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package filecache

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"

	"github.com/rollcall-dev/rollcall/pkg/credentials/plugin"
)

const (
	// usedFor is the part of its lifetime for which a credential is returned. It
	// is less than the part after which callers request the next one.
	usedFor = 0.65

	// lockInterval is how often a process retries a lock that another one holds.
	lockInterval = 20 * time.Millisecond

	entrySuffix     = ".json"
	lockSuffix      = ".lock"
	temporaryPrefix = ".new-"

	// maxEntry is more than the size of any credential.
	maxEntry = 4 << 20
)

// Cache stores credentials in files. The zero value stores nothing. It is safe
// for concurrent use, also by many processes.
type Cache struct {
	// Dir is the absolute path of the folder, which is created with mode 0700 if
	// missing. Get fails if other users can write to it. Default: nothing is
	// stored.
	Dir string
}

// AddFlags registers the flag --cache-dir.
func (c *Cache) AddFlags(flags *flag.FlagSet) {
	flags.StringVar(&c.Dir, "cache-dir", c.Dir,
		"`folder` in which credentials are stored until they expire, readable only by the user (default: none are stored)")
}

// Get returns the credential that is stored for the key, or obtains and stores
// one. The key is any value that can be encoded as JSON. It must contain all that
// distinguishes credentials: the identity, the scope, the source, and the
// plugin's name. Only a digest of it is stored. A credential without an expiry is
// not stored.
//
// Get returns the errors of obtain and of the context, and an error if the
// folder is unusable.
func (c *Cache) Get(ctx context.Context, key any, obtain func(context.Context) (*plugin.Credential, error)) (*plugin.Credential, error) {
	if c.Dir == "" {
		return obtain(ctx)
	}
	text, err := json.Marshal(key)
	if err != nil {
		return nil, fmt.Errorf("cache: key: %w", err)
	}
	if err := prepare(c.Dir); err != nil {
		return nil, fmt.Errorf("cache: %w", err)
	}
	digest := sha256.Sum256(text)
	path := filepath.Join(c.Dir, hex.EncodeToString(digest[:])+entrySuffix)
	if credential := load(path, time.Now()); credential != nil {
		return credential, nil
	}
	lock, err := acquire(ctx, path+lockSuffix)
	if err != nil {
		return nil, fmt.Errorf("cache: %w", err)
	}
	defer func() { _ = lock.Close() }()
	// Another process may have stored one before this one got the lock.
	if credential := load(path, time.Now()); credential != nil {
		return credential, nil
	}
	obtained := time.Now()
	credential, err := obtain(ctx)
	if err != nil || credential == nil || credential.Expiry.IsZero() {
		return credential, err
	}
	// The credential is returned even if it cannot be stored.
	if store(path, credential, obtained) == nil {
		sweep(c.Dir, time.Now())
	}
	return credential, nil
}

// acquire waits for the lock.
func acquire(ctx context.Context, path string) (*flock.Flock, error) {
	for {
		lock := flock.New(path, flock.SetPermissions(0o600))
		if _, err := lock.TryLockContext(ctx, lockInterval); err != nil {
			_ = lock.Close()
			return nil, fmt.Errorf("waiting for another process: %w", err)
		}
		if holds(lock) {
			return lock, nil
		}
		_ = lock.Close()
	}
}

// holds reports whether the lock is on the current file, and not on one that a
// sweep has removed.
func holds(lock *flock.Flock) bool {
	held, err := lock.Stat()
	if err != nil {
		return false
	}
	current, err := os.Stat(lock.Path())
	return err == nil && os.SameFile(held, current)
}

// sweep removes expired files that are not in use, and ignores errors.
func sweep(dir string, now time.Time) {
	paths, err := filepath.Glob(filepath.Join(dir, "*"+entrySuffix))
	if err != nil {
		return
	}
	for _, path := range paths {
		if !isExpired(path, now) {
			continue
		}
		lock := flock.New(path+lockSuffix, flock.SetPermissions(0o600))
		if locked, err := lock.TryLock(); err == nil && locked && holds(lock) && isExpired(path, now) {
			_ = os.Remove(path)
			_ = os.Remove(lock.Path())
		}
		_ = lock.Close()
	}
	// Files of processes that were killed while writing.
	paths, _ = filepath.Glob(filepath.Join(dir, temporaryPrefix+"*"))
	for _, path := range paths {
		if isExpired(path, now.Add(-time.Minute)) {
			_ = os.Remove(path)
		}
	}
}

// prepare creates the folder, or verifies that it can be used.
func prepare(dir string) error {
	if !filepath.IsAbs(dir) {
		return fmt.Errorf("%s: must be an absolute path", dir)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if err := checkOwner(info, 0o022); err != nil {
		return fmt.Errorf("%s: %w", dir, err)
	}
	return nil
}

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
