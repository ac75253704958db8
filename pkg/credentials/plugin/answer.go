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

// answer checks and prints the credential.
func answer(stdout io.Writer, apiVersion string, credential *Credential) error {
	if credential == nil {
		return errors.New("internal error: no credential and no error")
	}
	token := strings.TrimSpace(credential.Token)
	switch {
	case len(credential.ClientCertificate) > 0 != (len(credential.ClientKey) > 0):
		return errors.New("the credential has only one of client certificate and key")
	case token == "" && len(credential.ClientKey) == 0:
		return errors.New("the credential is empty")
	}
	type status struct {
		ExpirationTimestamp   string `json:"expirationTimestamp,omitempty"`
		Token                 string `json:"token,omitempty"`
		ClientCertificateData string `json:"clientCertificateData,omitempty"`
		ClientKeyData         string `json:"clientKeyData,omitempty"`
	}
	var message struct {
		Kind       string   `json:"kind"`
		APIVersion string   `json:"apiVersion"`
		Spec       struct{} `json:"spec"`
		Status     status   `json:"status"`
	}
	message.Kind, message.APIVersion = "ExecCredential", apiVersion
	message.Status = status{
		Token:                 token,
		ClientCertificateData: string(credential.ClientCertificate),
		ClientKeyData:         string(credential.ClientKey),
	}
	if !credential.Expiry.IsZero() {
		message.Status.ExpirationTimestamp = credential.Expiry.UTC().Format(time.RFC3339)
	}
	if err := json.NewEncoder(stdout).Encode(&message); err != nil {
		return fmt.Errorf("printing the credential: %w", err)
	}
	return nil
}
