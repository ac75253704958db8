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

	// keptFor is how long the file of a credential without an expiry is kept.
	keptFor = time.Hour

	// keptMargin is how long a credential that Keep keeps must still be valid.
	keptMargin = 30 * time.Second

	// retryInterval is after how long Get tries to replace a credential that was kept.
	retryInterval = 30 * time.Second
)

// Cache stores credentials in files. The zero value stores nothing. It is safe
// for concurrent use, also by many processes.
type Cache struct {
	// Dir is the absolute path of the folder, which is created with mode 0700 if
	// missing. Get fails if other users can write to it. Default: nothing is
	// stored.
	Dir string

	// MaxAge is for how long a credential is returned at most after it was obtained. If
	// it is set, credentials without an expiry are stored, too. Default: no limit.
	MaxAge time.Duration

	// Keep is called with the error of obtain if there is a stored credential with at
	// least 30 s left until its expiry. If it returns true, Get returns that one instead
	// of the error, and calls obtain again after 30 s at the earliest. Default: Get
	// returns the error.
	Keep func(err error) bool
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
// not stored unless MaxAge is set.
//
// Get returns the errors of obtain and of the context, and an error if the
// folder is unusable. An error of obtain is also that of all processes that were
// waiting for it, with its text: they do not repeat in turn what has just failed.
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
	started := time.Now()
	if e := load(path); e.isFresh(started, c) {
		return &e.Credential, nil
	}
	lock, err := acquire(ctx, path+lockSuffix)
	if err != nil {
		return nil, fmt.Errorf("cache: %w", err)
	}
	defer func() { _ = lock.Close() }()
	// Another process may have stored one before this one got the lock, or failed.
	e, now := load(path), time.Now()
	if e.isFresh(now, c) || e.isFrom(started, now) {
		return &e.Credential, nil
	}
	if err := failureSince(path, started); err != nil {
		return nil, err
	}
	return c.renew(ctx, path, e, obtain)
}

// renew obtains a credential and stores it. The old entry may be nil. The caller holds
// the lock.
func (c *Cache) renew(
	ctx context.Context, path string, old *entry, obtain func(context.Context) (*plugin.Credential, error),
) (*plugin.Credential, error) {
	obtained := time.Now()
	credential, err := obtain(ctx)
	now := time.Now()
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, err // of this process alone
	case err != nil && old.canBeKept(now) && c.Keep != nil && c.Keep(err):
		old.KeptUntil = now.Add(retryInterval).Round(0)
		_ = store(path, old)
		return &old.Credential, nil
	case err != nil:
		storeFailure(path, err)
		return nil, err
	case credential == nil, credential.Expiry.IsZero() && c.MaxAge == 0:
		return credential, nil
	}
	// The credential is returned even if it cannot be stored.
	if store(path, &entry{Obtained: obtained.Round(0), Credential: *credential}) == nil {
		sweep(c.Dir, now)
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
			_ = os.Remove(path + failureSuffix)
			_ = os.Remove(lock.Path())
		}
		_ = lock.Close()
	}
	// Files of processes that were killed while writing, and old failures.
	for _, pattern := range []string{temporaryPrefix + "*", "*" + failureSuffix} {
		paths, _ = filepath.Glob(filepath.Join(dir, pattern))
		for _, path := range paths {
			if isExpired(path, now.Add(-time.Minute)) {
				_ = os.Remove(path)
			}
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
