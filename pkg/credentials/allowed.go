// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// AllowedCommand is a plugin that may be run.
type AllowedCommand struct {
	// Command is an absolute path, or a name in one of the plugin folders, as
	// in a provider's ExecConfig. A path does not allow the name, nor a name
	// the path. Required.
	Command string

	// SHA256 are digests, in hexadecimal, one of which the executable must
	// have. It is read before each run. Default: any content.
	SHA256 []string
}

// String returns what the flag --credential-plugin-allow takes, one for each
// digest.
func (c AllowedCommand) String() string {
	if len(c.SHA256) == 0 {
		return c.Command
	}
	texts := make([]string, len(c.SHA256))
	for i, digest := range c.SHA256 {
		texts[i] = c.Command + digestMark + digest
	}
	return strings.Join(texts, " ")
}

// digestMark is between command and digest in the flag.
const digestMark = "@sha256:"

func parseAllowedCommand(text string) (AllowedCommand, error) {
	command, digest, found := strings.Cut(text, digestMark)
	allowed := AllowedCommand{Command: command}
	if found {
		allowed.SHA256 = []string{digest}
	}
	return allowed, allowed.fault()
}

// fault returns what is wrong with the entry, or nil.
func (c *AllowedCommand) fault() error {
	if c.Command == "" {
		return errors.New("the command must not be empty")
	}
	if err := commandFault(c.Command); err != nil {
		return err
	}
	for _, digest := range c.SHA256 {
		if raw, err := hex.DecodeString(digest); err != nil || len(raw) != sha256.Size {
			return fmt.Errorf("%q is not a SHA-256 digest in hexadecimal", digest)
		}
	}
	return nil
}

// allowlist are the commands that may be run. An empty one allows all.
type allowlist []AllowedCommand

// digests returns those of which the command's executable must have one, none
// where any will do. It returns false where the command is not allowed.
func (l allowlist) digests(command string) (digests []string, allowed bool) {
	if len(l) == 0 {
		return nil, true
	}
	for i := range l {
		if filepath.Clean(l[i].Command) != filepath.Clean(command) {
			continue
		}
		allowed = true
		if len(l[i].SHA256) == 0 {
			return nil, true
		}
		for _, digest := range l[i].SHA256 {
			digests = append(digests, strings.ToLower(digest))
		}
	}
	slices.Sort(digests)
	return slices.Compact(digests), allowed
}

// openVerified opens an executable whose content has one of the digests. It is
// ErrDenied to have another.
func openVerified(path string, digests []string) (*os.File, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("%w: its digest cannot be taken: %w", ErrDenied, err)
	}
	hash := sha256.New()
	if _, err := io.Copy(hash, file); err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("%w: its digest cannot be taken: %w", ErrDenied, err)
	}
	digest := hex.EncodeToString(hash.Sum(nil))
	if !slices.Contains(digests, digest) {
		_ = file.Close()
		return nil, fmt.Errorf("%w: its SHA-256 digest %s is not among those allowed", ErrDenied, digest)
	}
	return file, nil
}

// isScript tells whether the file is run by an interpreter, which is given its
// path.
func isScript(file *os.File) bool {
	var start [2]byte
	n, _ := file.ReadAt(start[:], 0)
	return string(start[:n]) == "#!"
}
