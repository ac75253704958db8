// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"

	"github.com/rollcall-dev/rollcall/pkg/credentials/internal/authn"
	"github.com/rollcall-dev/rollcall/pkg/credentials/internal/fingerprint"
)

// staticBackend is a rest.Config, which authenticates by itself.
type staticBackend struct {
	original *rest.Config
	server   *url.URL // nil if it is invalid
	digest   string
}

// FromRESTConfig returns an Access for an existing configuration, from a
// kubeconfig for example. The configuration authenticates requests; the Access
// can switch and close the connections. The configuration, which must not be
// nil, is copied.
//
// As in client-go, a name and a password in the URL are basic authentication
// and have precedence over a token. They are removed from the URL, which is
// shown to users.
//
// The fingerprint covers what defines the connection and the identity, by value:
// files by their path. A configuration with functions that cannot be compared
// (Transport, WrapTransport, Dial) has a fingerprint that no other one has.
//
// RESTConfig has no BearerTokenFile, AuthProvider and ExecProvider: the Access
// uses them. Requests to other hosts, as after a redirect, fail with ErrDenied.
//
// A Transport of the configuration, which others may use too, keeps its idle
// connections after Switch and Release. What is under way ends by its context.
func FromRESTConfig(config *rest.Config) *Access {
	config = rest.CopyConfig(config)
	server := takeUserInfo(config)
	return newAccess(&staticBackend{original: config, server: server, digest: staticFingerprint(config)})
}

// takeUserInfo moves the name and the password of the configuration's URL to
// other fields. It returns the URL without them, or nil if it is invalid.
func takeUserInfo(config *rest.Config) *url.URL {
	u, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		// Clients return an error with the URL, which must not show the password.
		if at := strings.LastIndex(config.Host, "@"); at >= 0 {
			config.Host = "https://<redacted>" + config.Host[at:]
		}
		return nil
	}
	if u.User != nil {
		config.Username = u.User.Username()
		config.Password, _ = u.User.Password()
		config.BearerToken, config.BearerTokenFile = "", ""
		u.User = nil
		config.Host = u.String()
	}
	return u
}

func (s *staticBackend) describe() description {
	if s.server == nil {
		return description{server: s.original.Host, fingerprint: s.digest}
	}
	return description{server: s.server.String(), fingerprint: s.digest}
}

// Server implements authn.Backend.
func (s *staticBackend) Server() (*url.URL, error) {
	if s.server == nil || s.server.Host == "" || s.original.Host == "" {
		return nil, fmt.Errorf("server %q is not a URL with a host", s.original.Host)
	}
	return s.server, nil
}

// Connect implements authn.Backend.
func (s *staticBackend) Connect() (*authn.Connections, error) {
	conns := authn.NewConnections(s.original.Dial)
	config := rest.CopyConfig(s.original)
	config.UserAgent = "" // clients have their own
	config.Dial = conns.Dial
	var below http.RoundTripper // client-go's goroutines keep the configuration
	config.WrapTransport = transport.Wrappers(func(base http.RoundTripper) http.RoundTripper {
		below = base
		return base
	}, config.WrapTransport)
	var err error
	conns.Transport, err = rest.TransportFor(config)
	conns.Base, below = below, nil
	if s.original.Transport != nil {
		conns.Share(conns.Transport)
	}
	return conns, err
}

// Acquire implements authn.Backend.
func (s *staticBackend) Acquire(*authn.Transport) (*authn.Authenticator, error) { return nil, nil }

// Release implements authn.Backend.
func (s *staticBackend) Release() {}

// Wrap implements authn.Backend.
func (s *staticBackend) Wrap(base http.RoundTripper) (http.RoundTripper, error) {
	config := rest.CopyConfig(s.original)
	config.UserAgent = ""
	return rest.HTTPWrappersForConfig(config, base)
}

// TLS implements authn.Backend.
func (s *staticBackend) TLS() string { return tlsDigest(s.original) }

// ConfigureTLS implements authn.Backend.
func (s *staticBackend) ConfigureTLS(config *tls.Config) error {
	own, err := rest.TLSConfigFor(rest.CopyConfig(s.original))
	if err != nil {
		return err
	}
	if own == nil {
		own = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	config.ServerName, config.InsecureSkipVerify, config.RootCAs = own.ServerName, own.InsecureSkipVerify, own.RootCAs
	config.Certificates, config.GetClientCertificate = own.Certificates, own.GetClientCertificate
	return nil
}

// Proxy implements authn.Backend.
func (s *staticBackend) Proxy() string { return proxyOf(s.original) }

// WrapError implements authn.Backend.
func (s *staticBackend) WrapError(err error) error { return err }

// config returns what clients are made with. It has the TLS settings, for clients
// that make connections of their own, and the credentials that do not change,
// for users to read. The Transport adds the credentials.
func (s *staticBackend) config() *rest.Config {
	config := rest.CopyConfig(s.original)
	if config.BearerTokenFile != "" {
		config.BearerToken, config.BearerTokenFile = "", ""
	}
	config.AuthProvider, config.AuthConfigPersister, config.ExecProvider = nil, nil, nil
	config.Transport, config.WrapTransport, config.Dial = nil, nil, nil
	return config
}

func (s *staticBackend) clone() backend {
	c := *s
	return &c
}

func (s *staticBackend) portable() *rest.Config { return rest.CopyConfig(s.original) }

// incomparable counts the configurations that equal no other.
var incomparable atomic.Uint64

func staticFingerprint(config *rest.Config) string {
	var execConfig string
	if config.ExecProvider != nil && config.ExecProvider.Config != nil {
		// Not part of the ExecConfig's JSON.
		if raw, err := json.Marshal(config.ExecProvider.Config); err == nil {
			execConfig = string(raw)
		}
	}
	var serial uint64
	if config.Transport != nil || config.WrapTransport != nil || config.Dial != nil {
		serial = incomparable.Add(1)
	}
	return fingerprint.Of(config.Host, config.APIPath, config.Username, config.Password, config.BearerToken,
		config.BearerTokenFile, config.Impersonate, config.DisableCompression,
		config.AuthProvider, config.ExecProvider, execConfig, tlsDigest(config), serial)
}

// tlsDigest covers the TLS settings and the proxy.
func tlsDigest(config *rest.Config) string {
	return fingerprint.Of(config.TLSClientConfig, proxyOf(config))
}

// proxyOf returns the URL of the configuration's own proxy, or "".
func proxyOf(config *rest.Config) string {
	if config.Proxy == nil {
		return ""
	}
	request, err := http.NewRequest(http.MethodGet, config.Host, nil)
	if err != nil {
		return ""
	}
	u, err := config.Proxy(request)
	if err != nil || u == nil {
		return ""
	}
	return u.String()
}
