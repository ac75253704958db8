// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"
	"strings"
	"time"

	"k8s.io/client-go/rest"

	"github.com/rollcall-dev/rollcall/pkg/credentials/internal/authn"
)

// CredentialKind is what authenticates requests.
type CredentialKind string

// The kinds. A name and a password are Basic, and also a URL that contains them.
const (
	KindNone                CredentialKind = "None"
	KindToken               CredentialKind = "Token"
	KindCertificate         CredentialKind = "ClientCertificate"
	KindTokenAndCertificate CredentialKind = "TokenAndClientCertificate"
	KindBasic               CredentialKind = "Basic"
	KindOfPlugin            CredentialKind = "Plugin"  // of client-go, which does not show the credential
	KindOfConfiguration     CredentialKind = "Unknown" // of functions in a rest.Config
)

// CredentialInfo describes a credential. It contains no secret.
type CredentialInfo struct {
	// Kind is what the credential consists of.
	Kind CredentialKind

	// Expiry is when the credential, or the first of its parts, expires. It is zero
	// if that is not known: of an opaque token without an expiry, for example.
	Expiry time.Time
}

// DescribeCredential obtains the credential if there is no valid one yet, and describes it.
// It sends no request to the cluster. It waits for the plugin until the context ends.
// The errors are those of requests.
func (a *Access) DescribeCredential(ctx context.Context) (CredentialInfo, error) {
	c, err := a.transport.Credential(ctx)
	if err != nil {
		return CredentialInfo{}, err
	}
	if c == nil {
		if static, ok := a.backend().(*staticBackend); ok {
			return static.describeCredential()
		}
	}
	return describeCredential(c), nil
}

func describeCredential(c *authn.Credential) CredentialInfo {
	switch {
	case c == nil:
		return CredentialInfo{Kind: KindNone}
	case c.Certificate != nil && c.Authorization != "":
		return CredentialInfo{Kind: KindTokenAndCertificate, Expiry: c.Expiry}
	case c.Certificate != nil:
		return CredentialInfo{Kind: KindCertificate, Expiry: c.Expiry}
	}
	return CredentialInfo{Kind: KindToken, Expiry: c.Expiry}
}

// describeCredential describes the configuration's own.
func (s *staticBackend) describeCredential() (CredentialInfo, error) {
	info := CredentialInfo{Kind: s.kind()}
	if info.Kind == KindOfPlugin || info.Kind == KindBasic {
		return info, nil
	}
	config := rest.CopyConfig(s.original)
	if err := rest.LoadTLSFiles(config); err != nil {
		return CredentialInfo{}, fmt.Errorf("client certificate: %w", err)
	}
	token, err := tokenOf(config)
	if err != nil {
		return CredentialInfo{}, err
	}
	info.Expiry = expiryOf(token, config.CertData)
	return info, nil
}

// tokenOf returns the bearer token, also one in a file, or "".
func tokenOf(config *rest.Config) (string, error) {
	if config.BearerTokenFile == "" {
		return config.BearerToken, nil
	}
	data, err := os.ReadFile(config.BearerTokenFile)
	if err != nil {
		return "", fmt.Errorf("token: %w", err)
	}
	return strings.TrimSpace(string(data)), nil
}

func certificateExpiry(data []byte) (notAfter time.Time, found bool) {
	block, _ := pem.Decode(data)
	if block == nil {
		return time.Time{}, false
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return time.Time{}, false
	}
	return certificate.NotAfter, true
}
