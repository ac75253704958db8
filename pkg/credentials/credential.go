// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"k8s.io/client-go/rest"

	"github.com/rollcall-dev/rollcall/pkg/credentials/internal/authn"
	"github.com/rollcall-dev/rollcall/pkg/credentials/plugin"
)

// ErrNoExecCredential means that requests authenticate with something that an
// ExecCredential cannot contain, such as a password, or with nothing.
var ErrNoExecCredential = errors.New("neither a token nor a client certificate")

// Credential returns the credential with which requests are sent now, for programs that
// pass it on, such as exec plugins. As the first request does, it runs the plugin if there
// is no valid credential, and waits for it; the limits of the Resolver apply. For an
// Access made by FromRESTConfig it returns the token and the certificate of the
// configuration, without an expiry unless they have one.
//
// Use RESTConfig to send requests: it renews the credential. Errors are those of
// requests, or wrap ErrNoExecCredential. Credential may be called concurrently.
func (a *Access) Credential(ctx context.Context) (*plugin.Credential, error) {
	if static, ok := a.backend().(*staticBackend); ok {
		return static.credential(time.Now())
	}
	c, err := a.transport.Credential(ctx)
	switch {
	case err != nil:
		return nil, err
	case c == nil: // switched to a configuration
		return a.Credential(ctx)
	}
	return export(c)
}

// export returns the credential in the form of plugins.
func export(c *authn.Credential) (*plugin.Credential, error) {
	out := &plugin.Credential{Token: strings.TrimPrefix(c.Authorization, "Bearer "), Expiry: c.Expiry}
	if c.Certificate == nil {
		return out, nil
	}
	for _, der := range c.Certificate.Certificate {
		out.ClientCertificate = append(out.ClientCertificate, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})...)
	}
	key, err := x509.MarshalPKCS8PrivateKey(c.Certificate.PrivateKey)
	if err != nil {
		return nil, fmt.Errorf("private key of the client certificate: %w", err)
	}
	out.ClientKey = pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})
	return out, nil
}

// credential returns that of the configuration.
func (s *staticBackend) credential(now time.Time) (*plugin.Credential, error) {
	config := rest.CopyConfig(s.original)
	switch {
	case config.ExecProvider != nil, config.AuthProvider != nil, config.Transport != nil, config.WrapTransport != nil:
		return nil, fmt.Errorf("%w: the configuration authenticates with code of its own", ErrNoExecCredential)
	case config.Username != "" || config.Password != "":
		return nil, fmt.Errorf("%w: the configuration has a user name and a password", ErrNoExecCredential)
	}
	if err := rest.LoadTLSFiles(config); err != nil {
		return nil, fmt.Errorf("client certificate: %w", err)
	}
	c := &plugin.Credential{Token: config.BearerToken, ClientCertificate: config.CertData, ClientKey: config.KeyData}
	if config.BearerTokenFile != "" {
		token, err := os.ReadFile(config.BearerTokenFile)
		if err != nil {
			return nil, fmt.Errorf("token: %w", err)
		}
		c.Token = string(token)
	}
	c.Token = strings.TrimSpace(c.Token)
	if c.Token == "" && len(c.ClientKey) == 0 {
		return nil, ErrNoExecCredential
	}
	c.Expiry = expiryOf(c)
	if !c.Expiry.IsZero() && !now.Before(c.Expiry) {
		return nil, fmt.Errorf("%w at %s", ErrExpired, c.Expiry.UTC().Format(time.RFC3339))
	}
	return c, nil
}

// expiryOf returns the earlier of the ends of the token and of the certificate, or zero.
func expiryOf(c *plugin.Credential) time.Time {
	expiry, _ := plugin.JWTExpiry(c.Token)
	block, _ := pem.Decode(c.ClientCertificate)
	if block == nil {
		return expiry
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err == nil && (expiry.IsZero() || certificate.NotAfter.Before(expiry)) {
		expiry = certificate.NotAfter
	}
	return expiry
}
