// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/http"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// errRewired is why a connection could not be opened for a request that came
// just when the client certificate was replaced.
var errRewired = errors.New("client certificate was replaced")

// wire is a transport and its connections, all made with the same client
// certificate.
type wire struct {
	transport *http.Transport
	conns     *connections
}

// newWire opens no connection yet.
func newWire(e *endpoint, auth *authenticator) *wire {
	tlsConfig := &tls.Config{
		MinVersion:         tls.VersionTLS12,
		ServerName:         e.ServerName,
		InsecureSkipVerify: e.Insecure, // only where the provider allows it
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			// The request that the connection is for has obtained it, unless it
			// brought its own authorization and needs none.
			return auth.certificate(), nil
		},
	}
	if len(e.CAData) > 0 {
		tlsConfig.RootCAs = x509.NewCertPool()
		tlsConfig.RootCAs.AppendCertsFromPEM(e.CAData)
	}
	conns := newConnections(defaultDial())
	return &wire{
		conns: conns,
		transport: utilnet.SetTransportDefaults(&http.Transport{
			Proxy:               e.proxy(),
			DialContext:         conns.dial,
			TLSClientConfig:     tlsConfig,
			TLSHandshakeTimeout: 10 * time.Second,
			MaxIdleConnsPerHost: 25,
			DisableCompression:  e.DisableCompression,
		}),
	}
}

// end closes the connections and lets none be opened any more. There is nothing
// to do for nil.
func (w *wire) end(err error) {
	if w == nil {
		return
	}
	w.conns.end(err)
	w.transport.CloseIdleConnections()
}
