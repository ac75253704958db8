// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/client-go/rest"

	"github.com/rollcall-dev/rollcall/pkg/credentials/internal/authn"
	"github.com/rollcall-dev/rollcall/pkg/credentials/plugin"
)

// Credential returns the credential with which requests are sent now, for programs that
// pass it on, such as exec plugins. As the first request does, it runs the plugin if there
// is no valid credential, and waits for it; the limits of the Resolver apply. For an
// Access made by the function FromRESTConfig it returns the token and the client
// certificate of the configuration, with their expiry if they show one; a password, an
// auth-provider and an ExecProvider cannot be passed on. Impersonation is not part of a
// credential.
//
// Use RESTConfig to send requests: it renews the credential. The errors are those of
// requests. Credential may be called concurrently.
func (a *Access) Credential(ctx context.Context) (*plugin.Credential, error) {
	for {
		c, err := a.transport.Credential(ctx)
		switch {
		case err != nil:
			return nil, err
		case c != nil:
			return export(c)
		}
		if static, ok := a.backend().(*staticBackend); ok {
			return static.credential()
		}
	}
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
func (s *staticBackend) credential() (*plugin.Credential, error) {
	config := rest.CopyConfig(s.original)
	switch {
	case config.Username != "" || config.Password != "":
		return nil, errors.New("a user name and a password cannot be passed on: use a token or a client certificate")
	case config.ExecProvider != nil, config.AuthProvider != nil, config.Transport != nil, config.WrapTransport != nil:
		return nil, errors.New("what authenticates requests by itself cannot be passed on: use a token or a client certificate")
	}
	if err := rest.LoadTLSFiles(config); err != nil {
		return nil, fmt.Errorf("client certificate: %w", err)
	}
	token, err := tokenOf(config)
	if err != nil {
		return nil, err
	}
	c := &plugin.Credential{Token: strings.TrimSpace(token), ClientCertificate: config.CertData, ClientKey: config.KeyData}
	if c.Token == "" && len(c.ClientKey) == 0 {
		return nil, errors.New("the configuration has neither a token nor a client certificate")
	}
	c.Expiry = expiryOf(c.Token, c.ClientCertificate)
	return c, nil
}

// expiryOf returns the earlier of the ends of the token and of the certificate, or zero.
func expiryOf(token string, certificate []byte) time.Time {
	expiry, _ := plugin.JWTExpiry(token)
	notAfter, found := certificateExpiry(certificate)
	if found && (expiry.IsZero() || notAfter.Before(expiry)) {
		return notAfter
	}
	return expiry
}
