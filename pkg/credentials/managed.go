// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/http"
	"net/url"
	"path/filepath"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"

	"github.com/rollcall-dev/rollcall/pkg/credentials/internal/authn"
	"github.com/rollcall-dev/rollcall/pkg/credentials/internal/execplugin"
	"github.com/rollcall-dev/rollcall/pkg/credentials/internal/fingerprint"
	"github.com/rollcall-dev/rollcall/pkg/inventory"
)

// managedBackend is an endpoint with a credential that a plugin obtains.
type managedBackend struct {
	resolver   *Resolver
	profile    inventory.Key
	provider   string
	endpoint   *endpoint
	invocation *execplugin.Invocation
	runKey     string // the same for all backends whose plugin run is the same
	digest     string

	auth *authn.Authenticator // set by Acquire
}

func newManagedAccess(r *Resolver, profile inventory.Key, provider string, e *endpoint, i *execplugin.Invocation) *Access {
	return newAccess(&managedBackend{
		resolver:   r,
		profile:    profile,
		provider:   provider,
		endpoint:   e,
		invocation: i,
		runKey:     fingerprint.Of(i),
		digest:     fingerprint.Of(e, i),
	})
}

func (m *managedBackend) describe() description {
	return description{provider: m.provider, server: m.endpoint.Server, fingerprint: m.digest}
}

// Server implements authn.Backend.
func (m *managedBackend) Server() (*url.URL, error) { return url.Parse(m.endpoint.Server) }

// Connect implements authn.Backend.
func (m *managedBackend) Connect() (*authn.Connections, error) {
	tlsConfig := &tls.Config{MinVersion: tls.VersionTLS12}
	if err := m.ConfigureTLS(tlsConfig); err != nil {
		return nil, err
	}
	conns := authn.NewConnections(nil)
	conns.Base = utilnet.SetTransportDefaults(&http.Transport{
		Proxy:               m.endpoint.proxy(),
		DialContext:         conns.Dial,
		TLSClientConfig:     tlsConfig,
		TLSHandshakeTimeout: 10 * time.Second,
		MaxIdleConnsPerHost: 25,
		DisableCompression:  m.endpoint.DisableCompression,
	})
	conns.Transport = m.endpoint.impersonating(conns.Base)
	return conns, nil
}

// ConfigureTLS implements authn.Backend.
func (m *managedBackend) ConfigureTLS(config *tls.Config) error {
	config.ServerName = m.endpoint.ServerName
	config.InsecureSkipVerify = m.endpoint.Insecure // only if the provider allows it
	config.RootCAs, config.Certificates = nil, nil
	if len(m.endpoint.CAData) > 0 {
		config.RootCAs = x509.NewCertPool()
		config.RootCAs.AppendCertsFromPEM(m.endpoint.CAData)
	}
	config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		// The request has obtained it, unless it has its own authorization and needs
		// none.
		return m.auth.Certificate(), nil
	}
	return nil
}

// Proxy implements authn.Backend.
func (m *managedBackend) Proxy() string { return m.endpoint.ProxyURL }

// Acquire implements authn.Backend.
func (m *managedBackend) Acquire(t *authn.Transport) (_ *authn.Authenticator, err error) {
	m.auth, err = m.resolver.pool.Acquire(m.runKey, m, t, m.source)
	return m.auth, err
}

// source returns how the credential is obtained. It does not hold the backend,
// which may be released before the Authenticator is.
func (m *managedBackend) source() *authn.Source {
	runner, provider, invocation, series := m.resolver.runner, m.provider, m.invocation, metrics.hold(m.provider)
	var last *authn.Credential // there is one run at a time
	return &authn.Source{
		Obtain: func(ctx context.Context) (*authn.Credential, error) {
			ended := series.finished
			c, err := runner.Run(ctx, provider, invocation, last, func() { ended = series.started() })
			ended(err)
			if err == nil {
				last = c
			}
			if failed, ok := errors.AsType[*execplugin.RunError](err); ok {
				err = (*RunError)(failed)
			}
			return c, err
		},
		RefreshInterval: m.resolver.options.RefreshInterval,
		Started:         series.add,
		Stopped:         series.remove,
		Log:             m.resolver.options.Logger.WithValues("provider", m.provider, "plugin", invocation.Name()),
	}
}

// Release implements authn.Backend.
func (m *managedBackend) Release() { m.resolver.pool.Release(m.runKey, m) }

// Wrap implements authn.Backend.
func (m *managedBackend) Wrap(base http.RoundTripper) (http.RoundTripper, error) {
	return m.endpoint.impersonating(base), nil
}

// TLS implements authn.Backend.
func (m *managedBackend) TLS() string { return tlsDigest(m.config()) }

// WrapError implements authn.Backend.
func (m *managedBackend) WrapError(err error) error {
	return &Error{Profile: m.profile, Provider: m.provider, Err: err}
}

// config returns the settings that the managed and the portable configuration
// share.
func (m *managedBackend) config() *rest.Config {
	config := &rest.Config{
		Host: m.endpoint.Server,
		TLSClientConfig: rest.TLSClientConfig{
			CAData:     append([]byte(nil), m.endpoint.CAData...),
			ServerName: m.endpoint.ServerName,
			Insecure:   m.endpoint.Insecure,
		},
		DisableCompression: m.endpoint.DisableCompression,
		Impersonate:        m.endpoint.Impersonate,
		QPS:                -1,
	}
	if m.endpoint.ProxyURL != "" {
		// Set only if necessary: with a Proxy function, client-go neither shares
		// transports nor reads HTTPS_PROXY.
		config.Proxy = m.endpoint.proxy()
	}
	return config
}

func (m *managedBackend) clone() backend {
	return &managedBackend{
		resolver: m.resolver, profile: m.profile, provider: m.provider,
		endpoint: m.endpoint, invocation: m.invocation, runKey: m.runKey, digest: m.digest,
	}
}

func (m *managedBackend) portable() *rest.Config {
	config := m.config()
	if m.invocation.Command == "" {
		config.Wrap(func(http.RoundTripper) http.RoundTripper { return notPortable{m} })
		return config
	}
	// Always an absolute path: client-go would look for a name in PATH.
	path, _ := m.resolver.runner.Locate(m.invocation.Command) // it may be installed later
	config.ExecProvider = m.invocation.ExecConfig(filepath.Clean(path))
	return config
}

// notPortable fails requests, which would be anonymous.
type notPortable struct{ backend *managedBackend }

func (t notPortable) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Body != nil {
		_ = request.Body.Close()
	}
	return nil, t.backend.WrapError(ErrNotPortable)
}
