// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package authn

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"slices"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// client is the transport of one client.
type client struct {
	transport *Transport
	base      http.RoundTripper // brought by the client, or nil
	madeFor   Backend           // for which the configuration was made
	tlsOf     Backend           // whose TLS settings base has
	tls       string            // their digest
	noTLS     bool              // base has no TLS settings that could get a client certificate
	added     http.Header
	refusal   error // why all requests fail, or nil
}

// Wrapper returns what makes the transport of a client of the one that client-go
// has made for it. A transport of client-go's own is replaced by the connections
// of the backend. Any other, which the caller has set or which upgrades connections
// to SPDY or websockets, is used as it is. If it shows its TLS settings, as the
// latter do, it gets those of the backend and its client certificate. The client's
// configuration was made for the backend; client-go adds the headers to each request
// because of the credentials in it. If the configuration has a client certificate, a
// client without one is refused: the connections would send it.
func (t *Transport) Wrapper(backend Backend, added http.Header, certificate bool) func(http.RoundTripper) http.RoundTripper {
	return func(base http.RoundTripper) http.RoundTripper {
		c := &client{transport: t, madeFor: backend, added: added}
		if plain := ofClientGo(base); plain != nil {
			if certificate && !hasCertificate(plain) {
				c.refusal = errCertificateRemoved
			}
			return c
		}
		c.base, c.tlsOf = base, backend
		if holder, ok := base.(utilnet.TLSClientConfigHolder); ok {
			c.refusal = c.configureTLS(holder.TLSClientConfig())
		}
		c.tls = c.tlsOf.TLS()
		return c
	}
}

// configureTLS gives the client's own transport the settings of the current backend:
// the configuration may be from before a switch.
func (c *client) configureTLS(config *tls.Config) error {
	now := c.transport.Backend()
	switch {
	case config == nil:
		c.noTLS = true
	case now.Proxy() == c.madeFor.Proxy(): // otherwise requests fail
		c.tlsOf = now
		if err := now.ConfigureTLS(config); err != nil {
			return err
		}
		config.GetClientCertificate = c.certificate(config)
	}
	return nil
}

// certificate returns what the configuration of a client's own transport gets its
// client certificate from: the authenticator of the moment. After a switch to a
// backend with the same TLS settings, that is another one.
func (c *client) certificate(config *tls.Config) func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
	static := config.GetClientCertificate
	if len(config.Certificates) > 0 {
		return static
	}
	return func(info *tls.CertificateRequestInfo) (*tls.Certificate, error) {
		if auth := c.transport.target().auth; auth != nil {
			return auth.Certificate(), nil
		}
		if static != nil {
			return static(info)
		}
		return &tls.Certificate{}, nil
	}
}

var (
	errCertificateRemoved = errors.New("the client certificate was removed from the copy of the configuration, " +
		"but the connections of the access have it: make another access without the certificate")
	errOtherTLS = errors.New("the client's own transport has the TLS settings or the proxy from before a switch: make a new client")
	errNoTLS    = errors.New("the client's own transport has no TLS settings, and so cannot have the client certificate: " +
		"set certificate-authority-data or tls-server-name for the cluster")
)

// ofClientGo returns the transport that client-go has made for a configuration
// without one, or nil if the caller has set it.
func ofClientGo(rt http.RoundTripper) *http.Transport {
	wrapped := false
	for {
		if wrapper, ok := rt.(utilnet.RoundTripperWrapper); ok {
			if !clientGoWrappers[typeName(rt)] {
				return nil
			}
			rt, wrapped = wrapper.WrappedRoundTripper(), true
			continue
		}
		t, ok := rt.(*http.Transport)
		// With a proxy, client-go adds no wrapper, but sets these.
		if ok && (wrapped || rt == http.DefaultTransport || t.MaxIdleConnsPerHost == 25 && t.TLSHandshakeTimeout == 10*time.Second) {
			return t
		}
		return nil
	}
}

// clientGoWrappers are the types around transports that client-go makes.
var clientGoWrappers = map[string]bool{
	"k8s.io/client-go/transport.trackedTransport":      true,
	"k8s.io/client-go/transport.atomicTransportHolder": true,
}

func typeName(rt http.RoundTripper) string {
	t := reflect.TypeOf(rt)
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t.PkgPath() + "." + t.Name()
}

func hasCertificate(t *http.Transport) bool {
	config := t.TLSClientConfig
	return config != nil && (len(config.Certificates) > 0 || config.GetClientCertificate != nil)
}

// Format implements fmt.Formatter: no verb shows a secret.
func (c *client) Format(state fmt.State, _ rune) { _, _ = io.WriteString(state, "client transport") }

var _ utilnet.RoundTripperWrapper = &client{}

// WrappedRoundTripper implements utilnet.RoundTripperWrapper. It returns nil
// after the end.
func (c *client) WrappedRoundTripper() http.RoundTripper {
	if c.base != nil {
		return c.base
	}
	if conns := c.transport.target().conns; conns != nil {
		return conns.Transport
	}
	return nil
}

// RoundTrip implements http.RoundTripper.
//
// A request that was not sent because its target was replaced, or that only
// reads and has failed while it was, is sent to the next target, if its body
// can be read again. Any other fails as on a dropped connection, since the
// server may have acted on it. A request with a credential that the server
// refuses is repeated once, with another credential.
func (c *client) RoundTrip(req *http.Request) (*http.Response, error) {
	t := c.transport
	for refused := false; ; {
		to := t.current.Load()
		if to.conns == nil {
			if to.owner != nil {
				t, _ = t.live()
				continue
			}
			if err := t.Open(); err != nil {
				closeBody(req)
				return nil, err
			}
			continue
		}
		out, cred, err := to.prepare(req, c)
		if t.current.Load() != to {
			continue // nothing was sent
		}
		if err != nil {
			closeBody(req)
			return nil, to.backend.WrapError(err)
		}
		if c.base == nil && !to.conns.begin() {
			continue // there are newer connections
		}
		resp, err := to.send(out, c.base)
		switch {
		case err != nil:
			if req, err = t.afterFailure(req, to, c, err); err != nil {
				return nil, err
			}
		case resp.StatusCode == http.StatusUnauthorized && !refused:
			again := t.afterRefusal(req, to, c, cred)
			if again == nil {
				return resp, nil
			}
			discard(resp)
			req, refused = again, true
		default:
			return resp, nil
		}
	}
}

// prepare returns the request as it is to be sent, and the credential that was
// added. A request keeps an Authorization header that it has.
func (to *target) prepare(req *http.Request, c *client) (out *http.Request, cred *Credential, err error) {
	if c.refusal != nil {
		return nil, nil, c.refusal
	}
	if c.base != nil && c.tlsOf != to.backend && c.tls != to.backend.TLS() {
		return nil, nil, errOtherTLS
	}
	u, err := to.servers.locate(req.URL)
	if err != nil {
		return nil, nil, err
	}
	out = req
	if len(c.added) > 0 && c.madeFor != to.backend {
		out = c.withoutAdded(req)
	}
	if to.auth != nil && out.Header.Get("Authorization") == "" {
		if cred, err = to.auth.credential(req.Context(), to.conns.closing.Done()); err != nil {
			return nil, nil, err
		}
	}
	if cred != nil && cred.Certificate != nil && c.noTLS {
		return nil, nil, errNoTLS
	}
	hasToken := cred != nil && cred.Authorization != ""
	if out == req && (hasToken || u != req.URL) {
		out = req.WithContext(req.Context()) // a shallow copy: a RoundTripper must not change a request
	}
	if u != req.URL {
		out.URL, out.Host = u, ""
	}
	if hasToken {
		out.Header = out.Header.Clone()
		if out.Header == nil {
			out.Header = http.Header{}
		}
		out.Header["Authorization"] = []string{cred.Authorization}
	}
	return out, cred, nil
}

// withoutAdded returns a copy of the request without the headers of a backend
// from before a switch.
func (c *client) withoutAdded(req *http.Request) *http.Request {
	out := req.WithContext(req.Context())
	out.Header = req.Header.Clone()
	for name, values := range c.added {
		if slices.Equal(out.Header[name], values) {
			delete(out.Header, name)
		}
	}
	return out
}

// isAuthorized reports whether the request has an Authorization header of the
// caller's own.
func (c *client) isAuthorized(req *http.Request) bool {
	return req.Header.Get("Authorization") != "" && !slices.Equal(req.Header["Authorization"], c.added["Authorization"])
}

// send sends the request over the connections, where it has begun, or a transport
// that the client has brought.
func (to *target) send(req *http.Request, base http.RoundTripper) (*http.Response, error) {
	if base == nil {
		return to.conns.send(req)
	}
	transport, err := to.backend.Wrap(base)
	if err != nil {
		closeBody(req)
		return nil, to.backend.WrapError(err)
	}
	return transport.RoundTrip(req)
}

// afterFailure returns the request to send again after an error, or the error
// for the caller.
func (t *Transport) afterFailure(req *http.Request, to *target, c *client, err error) (*http.Request, error) {
	now := t.target()
	if now == to || req.Context().Err() != nil {
		return nil, err
	}
	unsent := errors.Is(err, errEnded)
	switch {
	case unsent && now.ended != nil:
		return nil, now.backend.WrapError(now.ended)
	case !unsent && (now.ended != nil || c.base != nil || !onlyReads(req)):
		return nil, err
	}
	if again := rewind(req); again != nil {
		return again, nil
	}
	return nil, err
}

// afterRefusal returns the request to send again with another credential, or
// nil if there is none, the request cannot be repeated, or has an authorization
// of its own.
func (t *Transport) afterRefusal(req *http.Request, to *target, c *client, refused *Credential) *http.Request {
	if c.isAuthorized(req) {
		return nil
	}
	if !isRepeatable(req) {
		if refused != nil {
			to.auth.renew(refused, to.refusals) // for the requests to come
		}
		return nil
	}
	var fresh *Credential
	if refused != nil && t.target() == to {
		fresh = to.auth.replace(req.Context(), to.conns.closing.Done(), refused, to.refusals)
	}
	replaced := t.target() != to
	if fresh == nil && !replaced {
		return nil
	}
	if replaced && refused != nil && refused.Certificate != nil {
		to.conns.end() // the connections have the certificate
	}
	return rewind(req)
}

// onlyReads reports whether the request may be made twice. One that upgrades the
// connection may not: a GET can run a command in a pod.
func onlyReads(req *http.Request) bool {
	if req.Header.Get("Upgrade") != "" {
		return false
	}
	switch req.Method {
	case "", http.MethodGet, http.MethodHead, http.MethodOptions:
		return true
	}
	return false
}

// isRepeatable reports whether the request's body can be read again.
func isRepeatable(req *http.Request) bool {
	return req.Body == nil || req.Body == http.NoBody || req.GetBody != nil
}

// rewind returns the request as it was before it was sent, or nil if that is
// not possible.
func rewind(req *http.Request) *http.Request {
	if !isRepeatable(req) {
		return nil
	}
	if req.GetBody == nil {
		return req
	}
	body, err := req.GetBody()
	if err != nil {
		return nil
	}
	again := req.WithContext(req.Context())
	again.Body = body
	return again
}

// discard makes the connection of a response, which is small, free again.
func discard(resp *http.Response) {
	_, _ = io.CopyN(io.Discard, resp.Body, 4<<10)
	_ = resp.Body.Close()
}

func closeBody(req *http.Request) {
	if req.Body != nil {
		_ = req.Body.Close()
	}
}
