// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"net/url"
	"path/filepath"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/rollcall-dev/rollcall/pkg/inventory"
)

// managed is the link of an Access that a Resolver made.
type managed struct {
	pool       *pool
	profile    inventory.Key
	provider   string
	endpoint   *endpoint
	invocation *invocation
	conns      *connections

	mu        sync.Mutex      // guards what follows
	auth      *authenticator  // from the first config on
	transport *http.Transport // from the first use of a config on
	ended     error           // not nil once released
}

func newManagedAccess(pool *pool, profile inventory.Key, provider string, e *endpoint, i *invocation) *Access {
	return &Access{
		provider:    provider,
		server:      e.Server,
		fingerprint: digest(e, i),
		link: &managed{
			pool:       pool,
			profile:    profile,
			provider:   provider,
			endpoint:   e,
			invocation: i,
			conns:      newConnections(defaultDial()),
		},
	}
}

// baseConfig returns what both forms have in common.
func (m *managed) baseConfig() *rest.Config {
	config := &rest.Config{
		Host: m.endpoint.Server,
		TLSClientConfig: rest.TLSClientConfig{
			CAData:     append([]byte(nil), m.endpoint.CAData...),
			ServerName: m.endpoint.ServerName,
			Insecure:   m.endpoint.Insecure,
		},
		DisableCompression: m.endpoint.DisableCompression,
		QPS:                -1,
	}
	if m.endpoint.ProxyURL != "" {
		// Set only where it must be: with a Proxy function, client-go neither
		// shares transports nor reads HTTPS_PROXY.
		config.Proxy = m.proxy()
	}
	return config
}

func (m *managed) proxy() func(*http.Request) (*url.URL, error) {
	if m.endpoint.ProxyURL == "" {
		return http.ProxyFromEnvironment
	}
	proxy, err := url.Parse(m.endpoint.ProxyURL)
	return func(*http.Request) (*url.URL, error) { return proxy, err }
}

func (m *managed) config() *rest.Config {
	m.mu.Lock()
	if m.auth == nil && m.ended == nil {
		m.auth, m.ended = m.pool.acquire(m)
	}
	m.mu.Unlock()

	config := m.baseConfig()
	config.WrapTransport = m.wrap
	return config
}

// wrap puts authentication around what client-go made. Its own transport is
// replaced by ours, which presents client certificates and whose connections
// can be closed; anything else (an upgrade to SPDY, a transport of the caller)
// is used as it is.
func (m *managed) wrap(base http.RoundTripper) http.RoundTripper {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.auth != nil && isPlainTransport(base) {
		if m.transport == nil {
			m.transport = m.newTransport(m.auth)
		}
		base = m.transport
	}
	return &authRoundTripper{link: m, auth: m.auth, base: base}
}

func isPlainTransport(rt http.RoundTripper) bool {
	for {
		switch t := rt.(type) {
		case *http.Transport:
			return true
		case utilnet.RoundTripperWrapper:
			rt = t.WrappedRoundTripper()
		default:
			return false
		}
	}
}

func (m *managed) newTransport(auth *authenticator) *http.Transport {
	tlsConfig := &tls.Config{
		MinVersion:         tls.VersionTLS12,
		ServerName:         m.endpoint.ServerName,
		InsecureSkipVerify: m.endpoint.Insecure, //nolint:gosec // only where the provider allows it
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			// The request that this connection is for has obtained it, unless it
			// brought its own authorization and needs none.
			return auth.certificate(), nil
		},
	}
	if len(m.endpoint.CAData) > 0 {
		tlsConfig.RootCAs = x509.NewCertPool()
		tlsConfig.RootCAs.AppendCertsFromPEM(m.endpoint.CAData)
	}
	return utilnet.SetTransportDefaults(&http.Transport{
		Proxy:               m.proxy(),
		DialContext:         m.conns.dial,
		TLSClientConfig:     tlsConfig,
		TLSHandshakeTimeout: 10 * time.Second,
		MaxIdleConnsPerHost: 25,
		DisableCompression:  m.endpoint.DisableCompression,
	})
}

func (m *managed) portable() *rest.Config {
	i := m.invocation
	// An absolute path always: client-go would look for a name in PATH.
	command := filepath.Clean(m.pool.runner.locate(i.Command))
	exec := &clientcmdapi.ExecConfig{
		APIVersion:         i.apiVersion,
		Command:            command,
		Args:               append([]string(nil), i.Args...),
		Env:                append([]clientcmdapi.ExecEnvVar(nil), i.Env...),
		InstallHint:        i.Hint,
		ProvideClusterInfo: i.provideClusterInfo,
		InteractiveMode:    clientcmdapi.NeverExecInteractiveMode,
		StdinUnavailable:   true,
		PluginPolicy: clientcmdapi.PluginPolicy{
			PolicyType: clientcmdapi.PluginPolicyAllowlist,
			Allowlist:  []clientcmdapi.AllowlistEntry{{Command: command}},
		},
	}
	if i.config != nil {
		exec.Config = &runtime.Unknown{
			Raw:         append([]byte(nil), i.config...),
			ContentType: runtime.ContentTypeJSON,
		}
	}
	config := m.baseConfig()
	config.ExecProvider = exec
	return config
}

func (m *managed) release() {
	m.pool.release(m)
	m.end(ErrReleased)
}

// end closes all connections and lets all requests fail with the error.
func (m *managed) end(err error) {
	m.mu.Lock()
	if m.ended == nil {
		m.ended = err
	}
	transport := m.transport
	m.mu.Unlock()

	m.conns.end(err)
	if transport != nil {
		transport.CloseIdleConnections()
	}
}

// err returns why the link is not in use any more, or nil.
func (m *managed) err() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.ended
}

// wrapError says whose error it is.
func (m *managed) wrapError(err error) error {
	return &Error{Profile: m.profile, Provider: m.provider, Err: err}
}

// replace returns a credential other than the one that the server refused, or
// nil where there is none to be had; see authenticator.replace.
func (m *managed) replace(ctx context.Context, refused *credential) *credential {
	if m.err() != nil {
		return nil
	}
	return m.auth.replace(ctx, refused)
}
