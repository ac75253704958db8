// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package execplugin

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/rollcall-dev/rollcall/pkg/credentials/internal/errdefs"
)

// digests remembers the digests of executables by path.
type digests struct {
	mu    sync.Mutex // guards what follows
	known map[string]knownDigest
}

type knownDigest struct {
	of     identity
	sha256 string // in hexadecimal
}

// settled is how long ago a file must have changed for its digest to be
// remembered: the clock of a file system may be too coarse to tell two changes
// apart that follow each other at once.
const settled = 2 * time.Second

// openVerified opens an executable whose content has one of the digests.
// Otherwise it returns an ErrDenied.
func (d *digests) openVerified(path string, allowed []string) (*os.File, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("%w: its digest cannot be computed: %w", errdefs.ErrDenied, err)
	}
	digest, err := d.of(path, file, time.Now())
	if err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("%w: its digest cannot be computed: %w", errdefs.ErrDenied, err)
	}
	if !slices.Contains(allowed, digest) {
		_ = file.Close()
		return nil, fmt.Errorf("%w: its SHA-256 digest %s is not among those allowed", errdefs.ErrDenied, digest)
	}
	return file, nil
}

// of returns the digest of the file, which it reads unless it is the one that it
// has read before at this path, without a change in between.
func (d *digests) of(path string, file *os.File, now time.Time) (string, error) {
	before, changed, known := identify(file)
	if known {
		d.mu.Lock()
		last := d.known[path]
		d.mu.Unlock()
		if last.of == before {
			return last.sha256, nil
		}
	}
	hash := sha256.New()
	if _, err := io.Copy(hash, file); err != nil {
		return "", err
	}
	digest := hex.EncodeToString(hash.Sum(nil))
	if after, _, _ := identify(file); known && after == before && now.Sub(changed) > settled {
		d.mu.Lock()
		if d.known == nil {
			d.known = map[string]knownDigest{}
		}
		d.known[path] = knownDigest{of: before, sha256: digest}
		d.mu.Unlock()
	}
	return digest, nil
}
