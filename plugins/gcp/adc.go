// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package gcp

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"golang.org/x/oauth2/google"
)

const (
	defaultUniverse = "googleapis.com"

	credentialsVariable  = "GOOGLE_APPLICATION_CREDENTIALS"
	metadataHostVariable = "GCE_METADATA_HOST"
	quotaVariable        = "GOOGLE_CLOUD_QUOTA_PROJECT"
)

// knownTypes are the types of credentials files that yield access tokens.
var knownTypes = []google.CredentialsType{
	google.ServiceAccount,
	google.ExternalAccount,
	google.ImpersonatedServiceAccount,
	google.AuthorizedUser,
	google.ExternalAccountAuthorizedUser,
}

// source is the origin of application default credentials: a file, or the
// metadata server if there is no file.
type source struct {
	path string // "" for the metadata server
	data []byte
	credentialsFile
}

// credentialsFile has the fields of a credentials file that this package reads.
type credentialsFile struct {
	Type           google.CredentialsType `json:"type"`
	ClientEmail    string                 `json:"client_email"`
	QuotaProjectID string                 `json:"quota_project_id"`
	UniverseDomain string                 `json:"universe_domain"`
}

// findSource looks where google.FindDefaultCredentials does, without sending a
// request: the cache key depends on the source. Errors contain nothing of a file.
func (p *Plugin) findSource() (*source, error) {
	path, data, err := readCredentialsFile()
	if err != nil || path == "" {
		return &source{}, err
	}
	s := &source{path: path, data: data}
	if err := json.Unmarshal(data, &s.credentialsFile); err != nil {
		return nil, fmt.Errorf("credentials file %s: not a credentials file in JSON", path)
	}
	if !slices.Contains(knownTypes, s.Type) {
		return nil, fmt.Errorf("credentials file %s: type must be one of %q", path, knownTypes)
	}
	switch {
	case p.Account == "" || p.Account == s.ClientEmail:
		return s, nil
	case s.Type == google.ServiceAccount:
		return nil, fmt.Errorf("credentials file %s: the key does not belong to account %s, see --account", path, p.Account)
	default:
		return nil, fmt.Errorf("credentials file %s: --account cannot be used with type %s", path, s.Type)
	}
}

// readCredentialsFile returns the path "" if there is no file.
func readCredentialsFile() (path string, data []byte, err error) {
	if path := os.Getenv(credentialsVariable); path != "" {
		data, err := os.ReadFile(path)
		if err != nil {
			return "", nil, fmt.Errorf("%s: %w", credentialsVariable, err)
		}
		return path, data, nil
	}
	path = wellKnownFile()
	data, err = os.ReadFile(path)
	switch {
	case path == "" || errors.Is(err, fs.ErrNotExist):
		return "", nil, nil
	case err != nil:
		return "", nil, fmt.Errorf("credentials file: %w", err)
	}
	return path, data, nil
}

// wellKnownFile returns where gcloud writes application default credentials.
func wellKnownFile() string {
	const name = "application_default_credentials.json"
	if runtime.GOOS == "windows" {
		return filepath.Join(os.Getenv("APPDATA"), "gcloud", name)
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return ""
	}
	return filepath.Join(home, ".config", "gcloud", name)
}

// fingerprint changes with the file's content, or with the metadata server.
func (s *source) fingerprint() string {
	if s.path == "" {
		return "metadata server " + metadataHost()
	}
	digest := sha256.Sum256(s.data)
	return "file " + hex.EncodeToString(digest[:])
}

func metadataHost() string {
	return cmp.Or(os.Getenv(metadataHostVariable), "169.254.169.254")
}

// String describes the source, without a secret.
func (s *source) String() string {
	switch {
	case s.path == "":
		return "the metadata server at " + metadataHost()
	case s.ClientEmail != "":
		return fmt.Sprintf("the %s file %s of %s", s.Type, s.path, s.ClientEmail)
	default:
		return fmt.Sprintf("the %s file %s", s.Type, s.path)
	}
}

// universe returns the domain of Google's services.
func (p *Plugin) universe(s *source) string {
	return cmp.Or(p.UniverseDomain, s.UniverseDomain, defaultUniverse)
}

// quotaProject returns the project that is billed, or "".
func (p *Plugin) quotaProject(s *source) string {
	return cmp.Or(p.QuotaProject, os.Getenv(quotaVariable), s.QuotaProjectID)
}
