// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package execplugin

import (
	"encoding/json"
	"regexp"
	"strings"
	"unicode"
)

// maxStderr is how much of a plugin's standard error is kept: its end.
const maxStderr = 4 << 10

// tail is a writer that keeps the end.
type tail struct {
	data []byte
	cut  bool
}

func (t *tail) Write(p []byte) (int, error) {
	// More than is shown, since half of a secret would not be recognised.
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
	// The first word may be the second half of a secret.
	_, rest, found := strings.Cut(string(t.data), "\n")
	if !found {
		return nil
	}
	return []byte(rest)
}

// secretName is the end of names of fields and parameters with secrets.
const secretName = `token|secret|password|passwd|client-?key-?data|(api|access|private)[_-]?key`

// escapeSequence matches those of a terminal's colours.
var escapeSequence = regexp.MustCompile(`\x1b\[[0-9;]*[A-Za-z]`)

// secretLike matches what is not shown if a plugin prints it: keys in PEM format,
// JSON web tokens, what follows "bearer", basic authentication, passwords in
// URLs, and the values of fields and parameters with names of secrets.
var secretLike = []*regexp.Regexp{
	regexp.MustCompile(`(?s)-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(-----END [A-Z ]*PRIVATE KEY-----|$)`),
	regexp.MustCompile(`\beyJ[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]*)*`),
	regexp.MustCompile(`(?i)\bbearer\s+\S+`),
	// A quoted name has a quoted value, as in JSON; anything else is prose, as in
	// key "token": not found.
	regexp.MustCompile(`(?i)(` + secretName + `)["']\s*[:=]\s*["'][^"']*["']?`),
	regexp.MustCompile(`(?i)(` + secretName + `)\s*[:=]\s*["']?[^\s"',}]+["']?`),
	regexp.MustCompile(`(?i)\bauthorization["']?\s*[:=]\s*["']?basic\s+\S+`),
	regexp.MustCompile(`://[^/\s@]*:[^/\s@]*@`),
	regexp.MustCompile(`\bya29\.[A-Za-z0-9._-]+`),
}

const redacted = "[redacted]"

// programMark replaces the program's name while secrets are redacted.
const programMark = "\x00"

// printable returns the end of what the program wrote, at most maxStderr bytes,
// without secrets and control characters.
func printable(program string, text []byte, secrets []string) string {
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
		clean = strings.ReplaceAll(clean, secret, redacted)
	}
	// Programs start their messages with their name. What follows
	// "mc-credential-token-secret:" is not a secret.
	if strings.Contains(program, "-") {
		clean = strings.ReplaceAll("\n"+clean, "\n"+program+":", "\n"+programMark+":")[1:]
	}
	for _, pattern := range secretLike {
		clean = pattern.ReplaceAllString(clean, redacted)
	}
	clean = strings.ReplaceAll(clean, programMark, program)
	clean = strings.TrimSpace(clean)
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
	_ = json.Unmarshal(output, &credential) // what can be parsed is enough
	var secrets []string
	for _, secret := range []string{credential.Status.Token, credential.Status.ClientKeyData} {
		if secret = strings.TrimSpace(secret); secret != "" {
			secrets = append(secrets, secret)
		}
	}
	return secrets
}
