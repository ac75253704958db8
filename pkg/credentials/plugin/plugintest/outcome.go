// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package plugintest

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"
)

// maxAnswer is how much a plugin may print: callers read no more.
const maxAnswer = 1 << 20

// execCredential is the part of an answer that matters.
type execCredential struct {
	Kind       string `json:"kind"`
	APIVersion string `json:"apiVersion"`
	Status     *struct {
		Token                 string  `json:"token"`
		ClientCertificateData string  `json:"clientCertificateData"`
		ClientKeyData         string  `json:"clientKeyData"`
		ExpirationTimestamp   *string `json:"expirationTimestamp"`
	} `json:"status"`
}

// secretsIn returns the secrets of an answer, as far as it can be read.
func secretsIn(stdout []byte) []string {
	var answer execCredential
	_ = json.Unmarshal(stdout, &answer) // what can be read is enough
	if answer.Status == nil {
		return nil
	}
	var secrets []string
	for _, secret := range []string{answer.Status.Token, answer.Status.ClientKeyData} {
		if secret = strings.TrimSpace(secret); secret != "" {
			secrets = append(secrets, secret)
		}
	}
	return secrets
}

// succeeded returns nil for a run that printed a valid answer in the version.
func (o *outcome) succeeded(apiVersion string) error {
	if o.code != 0 {
		return fmt.Errorf("%s; on standard error: %s", o.end(), o.complaint())
	}
	if err := o.withoutTrace(); err != nil {
		return err
	}
	if len(o.stdout) > maxAnswer {
		return fmt.Errorf("the answer has %d bytes, callers read %d", len(o.stdout), maxAnswer)
	}
	var answer execCredential
	decoder := json.NewDecoder(bytes.NewReader(o.stdout))
	if err := decoder.Decode(&answer); err != nil {
		return fmt.Errorf("standard output does not begin with an ExecCredential in JSON, at byte %d", decoder.InputOffset())
	}
	if _, err := decoder.Token(); err != io.EOF {
		return errors.New("standard output has more than the answer")
	}
	return answer.valid(apiVersion, time.Now())
}

// valid returns why a client would not take the answer. It repeats no secret.
func (a *execCredential) valid(apiVersion string, now time.Time) error {
	switch {
	case a.Kind != "ExecCredential":
		return fmt.Errorf("kind is %q, not ExecCredential", a.Kind)
	case a.APIVersion != apiVersion:
		return fmt.Errorf("asked in %s, it answered in %q", apiVersion, a.APIVersion)
	case a.Status == nil:
		return errors.New("the answer has no status")
	}
	status := a.Status
	switch {
	case status.Token == "" && status.ClientCertificateData == "" && status.ClientKeyData == "":
		return errors.New("the answer has neither a token nor a client certificate")
	case strings.ContainsFunc(status.Token, func(r rune) bool { return r <= ' ' || r > '~' }):
		return errors.New("the token has characters that no header may have, such as a newline at its end")
	case (status.ClientCertificateData == "") != (status.ClientKeyData == ""):
		return errors.New("the answer has only one of client certificate and key")
	}
	if status.ClientKeyData != "" {
		if _, err := tls.X509KeyPair([]byte(status.ClientCertificateData), []byte(status.ClientKeyData)); err != nil {
			return errors.New("client certificate and key do not belong together, or are not in PEM form")
		}
	}
	if status.ExpirationTimestamp == nil {
		return nil
	}
	expiry, err := time.Parse(time.RFC3339, *status.ExpirationTimestamp)
	switch {
	case err != nil:
		return fmt.Errorf("expirationTimestamp is %q, not a time as in RFC 3339", *status.ExpirationTimestamp)
	case !now.Before(expiry):
		return fmt.Errorf("the credential expired at %s", *status.ExpirationTimestamp)
	}
	return nil
}

// failed returns nil for a run that failed in the way that callers can handle.
func (o *outcome) failed() error {
	switch {
	case o.code == 0:
		return errors.New("it succeeded")
	case o.code < 0 || o.code > 125:
		return fmt.Errorf("%s, not with a code from 1 to 125", o.end())
	case len(o.stdout) > 0:
		return fmt.Errorf("it failed, with %d bytes on standard output", len(o.stdout))
	case len(bytes.TrimSpace(o.stderr)) == 0:
		return errors.New("it failed without a word on standard error")
	}
	return o.withoutTrace()
}

// answeredOrFailed returns nil for either.
func (o *outcome) answeredOrFailed(apiVersion string) error {
	if o.code == 0 {
		return o.succeeded(apiVersion)
	}
	return o.failed()
}

// traces are how the stack traces of common languages begin.
var traces = regexp.MustCompile(`(?m)^(goroutine \d+|panic: |fatal error: |Traceback \(most recent|\s+at \S+[ (].*:\d+|Exception in thread|Unhandled exception|thread '.*' panicked)`)

// withoutTrace returns nil where standard error has no stack trace and, after a
// failure, one line.
func (o *outcome) withoutTrace() error {
	text := strings.TrimSpace(string(o.stderr))
	lines := strings.Count(text, "\n") + 1
	switch {
	case traces.MatchString(text):
		return errors.New("standard error shows a stack trace")
	case o.code != 0 && lines > 1:
		return fmt.Errorf("standard error has %d lines, not one", lines)
	}
	return nil
}

func (o *outcome) end() string {
	if o.code < 0 {
		return "it was ended by a signal"
	}
	return fmt.Sprintf("it ended with exit code %d", o.code)
}

// complaint is what standard error begins with.
func (o *outcome) complaint() string {
	const limit = 300
	text := strings.TrimSpace(string(o.stderr))
	if len(text) > limit {
		text = strings.ToValidUTF8(text[:limit], "") + " …"
	}
	if text == "" {
		return "nothing"
	}
	return text
}
