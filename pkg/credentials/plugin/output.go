// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
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

// printOutput validates the credential and prints it.
func printOutput(stdout io.Writer, apiVersion string, credential *Credential) error {
	if credential == nil {
		return errors.New("internal error: no credential and no error")
	}
	out := output{Kind: "ExecCredential", APIVersion: apiVersion}
	out.Status.Token = strings.TrimSpace(credential.Token)
	out.Status.ClientCertificateData = string(credential.ClientCertificate)
	out.Status.ClientKeyData = string(credential.ClientKey)
	if !credential.Expiry.IsZero() {
		out.Status.ExpirationTimestamp = credential.Expiry.UTC().Format(time.RFC3339)
	}
	switch {
	case (out.Status.ClientCertificateData == "") != (out.Status.ClientKeyData == ""):
		return errors.New("the credential has only one of client certificate and key")
	case out.Status.Token == "" && out.Status.ClientKeyData == "":
		return errors.New("the credential is empty")
	}
	if err := json.NewEncoder(stdout).Encode(&out); err != nil {
		return fmt.Errorf("printing the credential: %w", err)
	}
	return nil
}
