// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/rollcall-dev/rollcall/pkg/credentials/internal/rules"
)

// output is the ExecCredential that a plugin prints.
type output struct {
	Kind       string   `json:"kind"`
	APIVersion string   `json:"apiVersion"`
	Spec       struct{} `json:"spec"`
	Status     struct {
		ExpirationTimestamp   string `json:"expirationTimestamp,omitempty"`
		Token                 string `json:"token,omitempty"`
		ClientCertificateData string `json:"clientCertificateData,omitempty"`
		ClientKeyData         string `json:"clientKeyData,omitempty"`
	} `json:"status"`
}

// printOutput validates the credential, as callers do, and prints it.
func printOutput(stdout io.Writer, apiVersion string, credential *Credential, now time.Time) error {
	if credential == nil {
		return errors.New("internal error: no credential and no error")
	}
	out := output{Kind: "ExecCredential", APIVersion: apiVersion}
	out.Status.Token = strings.TrimSpace(credential.Token)
	out.Status.ClientCertificateData = string(credential.ClientCertificate)
	out.Status.ClientKeyData = string(credential.ClientKey)
	if !credential.Expiry.IsZero() {
		if year := credential.Expiry.UTC().Year(); year < 1 || year > 9999 {
			return fmt.Errorf("the credential's expiry in the year %d cannot be printed", year)
		}
		out.Status.ExpirationTimestamp = credential.Expiry.UTC().Format(time.RFC3339)
	}
	if err := out.check(credential.Expiry, now); err != nil {
		return err
	}
	data, err := json.Marshal(&out)
	switch {
	case err != nil:
		return fmt.Errorf("printing the credential: %w", err)
	case len(data)+1 > rules.MaxOutput:
		return fmt.Errorf("the credential takes more than %d bytes", rules.MaxOutput)
	}
	if _, err := stdout.Write(append(data, '\n')); err != nil {
		return fmt.Errorf("printing the credential: %w", err)
	}
	return nil
}

// check returns an error for what callers refuse. It repeats nothing of the
// credential.
func (o *output) check(expiry, now time.Time) error {
	switch {
	case (o.Status.ClientCertificateData == "") != (o.Status.ClientKeyData == ""):
		return errors.New("the credential has only one of client certificate and key")
	case o.Status.Token == "" && o.Status.ClientKeyData == "":
		return errors.New("the credential is empty")
	case !rules.IsHeaderSafe(o.Status.Token):
		return errors.New("the token has characters that are not allowed in a header")
	}
	if expiry.IsZero() {
		expiry, _ = JWTExpiry(o.Status.Token)
	}
	if o.Status.ClientKeyData != "" {
		pair, err := tls.X509KeyPair([]byte(o.Status.ClientCertificateData), []byte(o.Status.ClientKeyData))
		if err != nil {
			return errors.New("the client certificate and the key do not match, or are not in PEM form")
		}
		if expiry.IsZero() || pair.Leaf.NotAfter.Before(expiry) {
			expiry = pair.Leaf.NotAfter
		}
	}
	// Printed without the fraction of the second.
	if !expiry.IsZero() && !now.Before(expiry.Truncate(time.Second)) {
		return fmt.Errorf("the credential expired at %s", expiry.UTC().Format(time.RFC3339))
	}
	return nil
}
