// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"encoding/json"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
)

// given is the link of an Access made from a rest.Config.
type given struct {
	original *rest.Config
	conns    *connections
}

// FromRESTConfig returns an Access for a configuration that somebody has
// already, from a kubeconfig for example. Authentication is the
// configuration's own; the Access adds that Release closes the connections. The
// configuration, which must not be nil, is copied.
//
// A name and a password in the URL are, as for client-go, basic authentication,
// and come before a token. They are taken out of the URL, which is shown to
// people.
//
// The fingerprint covers what decides over the connection and the identity, by
// value: files by their path. A configuration with functions that cannot be
// compared (Transport, WrapTransport, Dial) equals no other one.
func FromRESTConfig(config *rest.Config) *Access {
	config = rest.CopyConfig(config)
	open := dialFunc(config.Dial)
	if open == nil {
		open = defaultDial()
	}
	server := takeUserInfo(config)
	return &Access{
		server:      server,
		fingerprint: givenFingerprint(config),
		link:        &given{original: config, conns: newConnections(open)},
	}
}

// takeUserInfo moves the name and password of the configuration's URL to where
// they are not shown. It returns the URL.
func takeUserInfo(config *rest.Config) string {
	u, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		// Nor is it shown why the URL is none. What is left is none either.
		if at := strings.LastIndex(config.Host, "@"); at >= 0 {
			config.Host = "https://<redacted>" + config.Host[at:]
		}
		return config.Host
	}
	if u.User != nil {
		config.Username = u.User.Username()
		config.Password, _ = u.User.Password()
		config.BearerToken, config.BearerTokenFile = "", ""
		u.User = nil
		config.Host = u.String()
	}
	return u.String()
}

func (g *given) config() *rest.Config {
	config := rest.CopyConfig(g.original)
	if config.Transport == nil {
		config.Dial = g.conns.dial
	}
	config.Wrap(func(base http.RoundTripper) http.RoundTripper {
		return &givenRoundTripper{conns: g.conns, base: base}
	})
	return config
}

func (g *given) portable() *rest.Config { return rest.CopyConfig(g.original) }

func (g *given) expiry() (time.Time, bool) { return time.Time{}, false }

func (g *given) release() { g.conns.end(ErrReleased) }

// givenRoundTripper lets requests fail once the Access is released. That
// matters for a transport of the caller's, whose connections are not known.
type givenRoundTripper struct {
	conns *connections
	base  http.RoundTripper
}

var _ utilnet.RoundTripperWrapper = &givenRoundTripper{}

func (t *givenRoundTripper) WrappedRoundTripper() http.RoundTripper { return t.base }

func (t *givenRoundTripper) RoundTrip(request *http.Request) (*http.Response, error) {
	if err := t.conns.err(); err != nil {
		closeBody(request)
		return nil, err
	}
	return t.base.RoundTrip(request)
}

// incomparable numbers the configurations that equal no other.
var incomparable atomic.Uint64

func givenFingerprint(config *rest.Config) string {
	var proxy string
	if config.Proxy != nil {
		if request, err := http.NewRequest(http.MethodGet, config.Host, nil); err == nil {
			if u, err := config.Proxy(request); err == nil && u != nil {
				proxy = u.String()
			}
		}
	}
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
	return digest(config.Host, config.APIPath, config.Username, config.Password, config.BearerToken,
		config.BearerTokenFile, config.Impersonate, config.TLSClientConfig, config.DisableCompression,
		config.AuthProvider, config.ExecProvider, execConfig, proxy, serial)
}
