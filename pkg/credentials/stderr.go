// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"encoding/json"
	"regexp"
	"strings"
	"unicode"
)

// maxStderr is how much of a plugin's standard error is kept: its end.
const maxStderr = 4 << 10

// tail keeps the end of what is written to it.
type tail struct {
	data []byte
	cut  bool
}

func (t *tail) Write(p []byte) (int, error) {
	// A line more than is kept, so that no secret at the cut is half shown and
	// therefore not recognised.
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

// escapeSequence matches the colours of a terminal.
var escapeSequence = regexp.MustCompile(`\x1b\[[0-9;]*[A-Za-z]`)

// secretLike matches what should not be shown even if a plugin prints it: keys
// in PEM form, JSON web tokens, what follows "bearer", basic authentication,
// passwords in URLs, and the values of fields and parameters that are named like secrets.
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

// programMark stands for the program's name while secrets are looked for.
const programMark = "\x00"

// printable returns the end of what the program wrote, at most maxStderr bytes,
// without secrets and control characters.
func printable(program string, text []byte, secrets []string) string {
	clean := escapeSequence.ReplaceAllString(strings.ToValidUTF8(string(text), "?"), "")
	// First, so that nothing that goes can hide a secret.
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
	// Programs begin their messages with their name. What follows that of
	// "mc-credential-token-secret" is no secret; after "token" it may be one.
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

// secretsIn returns the secrets of an answer, as far as it can be read.
func secretsIn(answer []byte) []string {
	var credential struct {
		Status struct {
			Token         string `json:"token"`
			ClientKeyData string `json:"clientKeyData"`
		} `json:"status"`
	}
	_ = json.Unmarshal(answer, &credential) // what can be read is enough
	var secrets []string
	for _, secret := range []string{credential.Status.Token, credential.Status.ClientKeyData} {
		if secret = strings.TrimSpace(secret); secret != "" {
			secrets = append(secrets, secret)
		}
	}
	return secrets
}
