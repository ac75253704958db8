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

	"github.com/rollcall-dev/rollcall/pkg/credentials/internal/errdefs"
)

// openVerified opens an executable whose content has one of the digests.
// Otherwise it returns an ErrDenied.
func openVerified(path string, digests []string) (*os.File, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("%w: its digest cannot be computed: %w", errdefs.ErrDenied, err)
	}
	hash := sha256.New()
	if _, err := io.Copy(hash, file); err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("%w: its digest cannot be computed: %w", errdefs.ErrDenied, err)
	}
	digest := hex.EncodeToString(hash.Sum(nil))
	if !slices.Contains(digests, digest) {
		_ = file.Close()
		return nil, fmt.Errorf("%w: its SHA-256 digest %s is not among those allowed", errdefs.ErrDenied, digest)
	}
	return file, nil
}
