// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package execplugin

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
	"unicode"

	"github.com/rollcall-dev/rollcall/pkg/credentials/internal/redact"
)

// maxStderr is how much of a plugin's standard error is kept: its end.
const maxStderr = 4 << 10

// tail is a writer that keeps the end.
type tail struct {
	data []byte
	cut  bool
}

func (t *tail) Write(p []byte) (int, error) {
	// More than is shown: half of a secret may not be recognised.
	const kept = 4 * maxStderr
	t.data = append(t.data, p...)
	if len(t.data) > kept {
		t.data = append(t.data[:0], t.data[len(t.data)-kept:]...)
		t.cut = true
	}
	return len(p), nil
}

func (t *tail) bytes() []byte {
	if !t.cut {
		return t.data
	}
	// The first word may be the second half of a secret, and the first line
	// that of one with spaces.
	if _, rest, found := bytes.Cut(t.data, []byte("\n")); found {
		return rest
	}
	_, rest, _ := bytes.Cut(t.data, []byte(" "))
	return rest
}

// escapeSequence matches those of a terminal's colours.
var escapeSequence = regexp.MustCompile(`\x1b\[[0-9;]*[A-Za-z]`)

// printable returns the end of the text, at most maxStderr bytes, without secrets
// and control characters.
func printable(text []byte, secrets []string) string {
	clean := escapeSequence.ReplaceAllString(strings.ToValidUTF8(string(text), "?"), "")
	// First, so that what is removed cannot hide a secret.
	clean = strings.Map(func(r rune) rune {
		switch {
		case r == '\n':
			return r
		case r == '\t' || r == '\r':
			return ' '
		case !unicode.IsPrint(r):
			return -1
		}
		return r
	}, clean)
	for _, secret := range secrets {
		clean = strings.ReplaceAll(clean, secret, redact.Mark)
	}
	clean = strings.TrimSpace(redact.Text(clean))
	if len(clean) > maxStderr {
		clean = strings.ToValidUTF8(clean[len(clean)-maxStderr:], "")
	}
	return clean
}

// secretsIn returns the secrets in the output, if it can be parsed.
func secretsIn(output []byte) []string {
	var credential struct {
		Status struct {
			Token         string `json:"token"`
			ClientKeyData string `json:"clientKeyData"`
		} `json:"status"`
	}
	// Names in any case, and what can be parsed: more is redacted then.
	_ = json.Unmarshal(output, &credential)
	var secrets []string
	for _, secret := range []string{credential.Status.Token, credential.Status.ClientKeyData} {
		if secret = strings.TrimSpace(secret); secret != "" {
			secrets = append(secrets, secret)
		}
	}
	return secrets
}
