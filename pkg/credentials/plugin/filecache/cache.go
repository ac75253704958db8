// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package filecache

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"

	"github.com/rollcall-dev/rollcall/pkg/credentials/plugin"
)

const (
	// usedFor is the part of its lifetime for which a credential is handed out.
	// It is less than the part after which callers ask for the next one, so that
	// these get a new one.
	usedFor = 0.65

	// lockInterval is how often a process that waits for another looks whether
	// that is done.
	lockInterval = 20 * time.Millisecond
)

// Cache keeps credentials. The zero value keeps none. It may be used
// concurrently, and by many processes at once.
type Cache struct {
	// Dir is the folder, which is made with mode 0700 where it does not exist.
	// One that others can write to is refused. Empty: nothing is kept.
	Dir string
}

// AddFlags registers the flag --cache-dir.
func (c *Cache) AddFlags(flags *flag.FlagSet) {
	flags.StringVar(&c.Dir, "cache-dir", c.Dir,
		"`folder` in which credentials are kept until they get old, readable for the user alone (default: none are kept)")
}

// Get returns the credential that is kept for the key, or obtains and keeps one.
// The key is any value that JSON can write, and has everything in it that makes
// one credential differ from another: whose it is, what it is good for, where
// it comes from, and the plugin's name. Only a digest of it is stored. A
// credential without an expiry is not kept.
//
// Errors are those of obtain, the context's, and those of a folder that cannot
// be used.
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
	// Somebody may have been faster.
	if credential := load(path, time.Now()); credential != nil {
		return credential, nil
	}
	obtained := time.Now()
	credential, err := obtain(ctx)
	if err != nil || credential == nil || credential.Expiry.IsZero() {
		return credential, err
	}
	// A full disk is no reason to withhold what was obtained.
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

// holds tells whether the lock is on the file that others would open now, and
// not on one that was removed by a sweep.
func holds(lock *flock.Flock) bool {
	held, err := lock.Stat()
	if err != nil {
		return false
	}
	current, err := os.Stat(lock.Path())
	return err == nil && os.SameFile(held, current)
}

// sweep removes what has expired, unless it is in use. What cannot be removed
// stays.
func sweep(dir string, now time.Time) {
	paths, err := filepath.Glob(filepath.Join(dir, "*"+entrySuffix))
	if err != nil {
		return
	}
	for _, path := range paths {
		if !expired(path, now) {
			continue
		}
		lock := flock.New(path+lockSuffix, flock.SetPermissions(0o600))
		if locked, err := lock.TryLock(); err == nil && locked && holds(lock) && expired(path, now) {
			_ = os.Remove(path)
			_ = os.Remove(lock.Path())
		}
		_ = lock.Close()
	}
	// Left by processes that were killed while they wrote.
	paths, _ = filepath.Glob(filepath.Join(dir, temporaryPrefix+"*"))
	for _, path := range paths {
		if expired(path, now.Add(-time.Minute)) {
			_ = os.Remove(path)
		}
	}
}

// prepare makes the folder, or checks it.
func prepare(dir string) error {
	if !filepath.IsAbs(dir) {
		return fmt.Errorf("%s: must be an absolute path", dir)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	info, err := os.Stat(dir)
	switch {
	case err != nil:
		return err
	case !info.IsDir():
		return fmt.Errorf("%s: not a folder", dir)
	}
	if err := ownAlone(info, 0o022); err != nil {
		return fmt.Errorf("%s: %w", dir, err)
	}
	return nil
}

// errOthers is why a file is not trusted.
var errOthers = errors.New("it belongs to somebody else, or its mode gives rights to others")
