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

// outcome is the result of a run.
type outcome struct {
	stdout, stderr []byte
	code           int           // -1 if a signal ended the run
	sinceSignal    time.Duration // from the signal to the end
}

// maxOutput is how many bytes of a plugin's output callers read.
const maxOutput = 1 << 20

// execCredential is the relevant part of a plugin's output.
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

// secretsIn returns the secrets of the output, as far as it can be decoded.
func secretsIn(stdout []byte) []string {
	var printed execCredential
	_ = json.Unmarshal(stdout, &printed) // a partial result is enough
	if printed.Status == nil {
		return nil
	}
	var secrets []string
	for _, secret := range []string{printed.Status.Token, printed.Status.ClientKeyData} {
		if secret = strings.TrimSpace(secret); secret != "" {
			secrets = append(secrets, secret)
		}
	}
	return secrets
}

// succeeded verifies that a run printed valid output in the version.
func succeeded(apiVersion string) func(*outcome) error {
	return func(o *outcome) error {
		if o.code != 0 {
			return o.exitError()
		}
		if err := o.checkStderr(); err != nil {
			return err
		}
		if len(o.stdout) > maxOutput {
			return fmt.Errorf("the output has %d bytes, callers read %d", len(o.stdout), maxOutput)
		}
		var printed execCredential
		decoder := json.NewDecoder(bytes.NewReader(o.stdout))
		if err := decoder.Decode(&printed); err != nil {
			return fmt.Errorf("standard output does not begin with an ExecCredential in JSON, at byte %d", decoder.InputOffset())
		}
		if _, err := decoder.Token(); err != io.EOF {
			return errors.New("standard output has more than one ExecCredential")
		}
		return printed.validate(apiVersion, time.Now())
	}
}

// validate returns why a client would reject the output. Errors contain no secret.
func (c *execCredential) validate(apiVersion string, now time.Time) error {
	switch {
	case c.Kind != "ExecCredential":
		return fmt.Errorf("kind is %q, not ExecCredential", c.Kind)
	case c.APIVersion != apiVersion:
		return fmt.Errorf("the request is in %s, the output in %q", apiVersion, c.APIVersion)
	case c.Status == nil:
		return errors.New("the output has no status")
	}
	status := c.Status
	switch {
	case status.Token == "" && status.ClientCertificateData == "" && status.ClientKeyData == "":
		return errors.New("the output has neither a token nor a client certificate")
	case strings.ContainsFunc(status.Token, func(r rune) bool { return r <= ' ' || r > '~' }):
		return errors.New("the token has characters that are invalid in a header, such as a newline at its end")
	case (status.ClientCertificateData == "") != (status.ClientKeyData == ""):
		return errors.New("the output has only one of client certificate and key")
	}
	if status.ClientKeyData != "" {
		if _, err := tls.X509KeyPair([]byte(status.ClientCertificateData), []byte(status.ClientKeyData)); err != nil {
			return errors.New("client certificate and key do not match, or are not in PEM form")
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

// failed verifies that a run failed in a way that callers can handle.
func (o *outcome) failed() error {
	switch {
	case o.code == 0:
		return errors.New("it succeeded")
	case o.code < 0 || o.code > 125:
		return fmt.Errorf("%s, not with a code from 1 to 125", o.exit())
	case len(o.stdout) > 0:
		return fmt.Errorf("it failed, with %d bytes on standard output", len(o.stdout))
	case len(bytes.TrimSpace(o.stderr)) == 0:
		return errors.New("it failed with nothing on standard error")
	}
	return o.checkStderr()
}

func succeededOrFailed(o *outcome) error {
	if o.code == 0 {
		return succeeded(v1)(o)
	}
	return o.failed()
}

// traces matches the beginnings of stack traces in common languages.
var traces = regexp.MustCompile(`(?m)^(goroutine \d+|panic: |fatal error: |Traceback \(most recent|\s+at \S+[ (].*:\d+|Exception in thread|Unhandled exception|thread '.*' panicked)`)

// checkStderr verifies that standard error has no stack trace and, after a
// failure, at most one line.
func (o *outcome) checkStderr() error {
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

func (o *outcome) exit() string {
	if o.code < 0 {
		return "it was ended by a signal"
	}
	return fmt.Sprintf("it ended with exit code %d", o.code)
}

// exitError reports the exit code and the beginning of standard error.
func (o *outcome) exitError() error {
	const limit = 300
	text := strings.TrimSpace(string(o.stderr))
	switch {
	case text == "":
		text = "nothing"
	case len(text) > limit:
		text = strings.ToValidUTF8(text[:limit], "") + " …"
	}
	return fmt.Errorf("%s; on standard error: %s", o.exit(), text)
}
