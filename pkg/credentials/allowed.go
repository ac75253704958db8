// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rollcall-dev/rollcall/pkg/credentials/internal/rules"
)

// AllowedCommand is a plugin that may be run.
type AllowedCommand struct {
	// Command is a path, or a name in one of the plugin folders, as in a
	// provider's ExecConfig. A path does not allow the name, nor a name the path.
	// Required.
	Command string

	// SHA256 are digests, in hexadecimal, one of which the executable must
	// have. On Linux it is read again when the file has changed, elsewhere before
	// each run. Changes through memory that was mapped before are not noticed:
	// no one else may have the right to write the file. Default: any content.
	SHA256 []string
}

// String returns the value of the flag --credential-plugin-allow, one for each
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
	return allowed, allowed.check()
}

func (c *AllowedCommand) check() error {
	if c.Command == "" {
		return errors.New("the command must not be empty")
	}
	if err := rules.CheckCommand(c.Command); err != nil {
		return err
	}
	for _, digest := range c.SHA256 {
		if raw, err := hex.DecodeString(digest); err != nil || len(raw) != sha256.Size {
			return fmt.Errorf("%q is not a SHA-256 digest in hexadecimal", digest)
		}
	}
	return nil
}

// complete checks the entry, makes a path absolute and copies the digests in
// lower case.
func (c *AllowedCommand) complete(workDir string) error {
	if err := c.check(); err != nil {
		return err
	}
	if rules.IsPath(c.Command) && !filepath.IsAbs(c.Command) {
		c.Command = filepath.Join(workDir, c.Command)
	}
	c.SHA256 = slices.Clone(c.SHA256)
	for i := range c.SHA256 {
		c.SHA256[i] = strings.ToLower(c.SHA256[i])
	}
	return nil
}

// allowlist are the commands that may be run. An empty one allows all.
type allowlist []AllowedCommand

// digests returns the digests of which the command's executable must have one,
// or none if any content is allowed. It returns false if the command is not
// allowed.
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
		digests = append(digests, l[i].SHA256...)
	}
	slices.Sort(digests)
	return slices.Compact(digests), allowed
}
