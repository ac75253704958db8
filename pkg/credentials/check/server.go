// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync"
	"syscall"
	"time"

	"k8s.io/client-go/rest"

	"github.com/rollcall-dev/rollcall/pkg/credentials"
)

// probeResult is the outcome of the steps Server and TLS.
type probeResult struct{ server, tls outcome }

// probe sends a request without a credential over a connection of its own.
func probe(ctx context.Context, access *credentials.Access, limit time.Duration) probeResult {
	start := time.Now()
	// The portable configuration has the Dial function of the Access, too.
	original := access.PortableRESTConfig()
	if original.Transport != nil {
		reason := skipped("the configuration has a transport of its own")
		return probeResult{server: reason, tls: reason}
	}
	config := rest.AnonymousClientConfig(original)
	p := &prober{limit: limit, insecure: config.Insecure, custom: len(config.CAData) > 0 || config.CAFile != ""}
	server, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return p.unusable("the server is not a URL")
	}
	p.server = server
	tlsConfig, err := rest.TLSConfigFor(config)
	if err != nil {
		return p.unusable("TLS settings: " + err.Error())
	}
	if tlsConfig == nil {
		tlsConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	tlsConfig.VerifyConnection = p.verified
	transport := &http.Transport{
		Proxy: p.proxyFor(config.Proxy), DialContext: config.Dial, TLSClientConfig: tlsConfig,
		ForceAttemptHTTP2: true, DisableKeepAlives: true,
	}
	defer transport.CloseIdleConnections()
	request, err := http.NewRequestWithContext(httptrace.WithClientTrace(ctx, p.trace()), http.MethodGet, server.JoinPath("version").String(), nil)
	if err != nil {
		return p.unusable("the server is not a URL")
	}
	response, err := transport.RoundTrip(request)
	status := ""
	if err == nil {
		status = response.Status
		_, _ = io.CopyN(io.Discard, response.Body, 4<<10)
		_ = response.Body.Close()
		if response.StatusCode >= http.StatusInternalServerError {
			err = &statusError{status}
		}
	}
	return p.result(ctx, status, err, time.Since(start))
}

// statusError is a response with a status of 500 or more.
type statusError struct{ status string }

func (e *statusError) Error() string { return "the response is " + e.status }

// prober notes how far a request gets.
type prober struct {
	server   *url.URL
	limit    time.Duration
	insecure bool // the certificate is not verified
	custom   bool // there are certificate authorities of the cluster's own

	mu          sync.Mutex // guards what follows
	proxy       *url.URL
	address     string // of the connection
	handshake   bool   // with the server, not a proxy, has begun
	certificate *x509.Certificate
}

func (p *prober) unusable(message string) probeResult {
	return probeResult{server: failed(InvalidProfile, message), tls: skipped("no server")}
}

// proxyFor returns the function for a transport, which notes the proxy.
func (p *prober) proxyFor(configured func(*http.Request) (*url.URL, error)) func(*http.Request) (*url.URL, error) {
	if configured == nil {
		configured = http.ProxyFromEnvironment
	}
	return func(request *http.Request) (*url.URL, error) {
		proxy, err := configured(request)
		p.mu.Lock()
		p.proxy = proxy
		p.mu.Unlock()
		return proxy, err
	}
}

func (p *prober) trace() *httptrace.ClientTrace {
	handshakes := 0
	return &httptrace.ClientTrace{
		GotConn: func(info httptrace.GotConnInfo) {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.address = info.Conn.RemoteAddr().String()
		},
		ConnectDone: func(_, address string, err error) {
			p.mu.Lock()
			defer p.mu.Unlock()
			if err == nil {
				p.address = address
			}
		},
		TLSHandshakeStart: func() {
			p.mu.Lock()
			defer p.mu.Unlock()
			handshakes++
			// The first one may be with the proxy.
			p.handshake = p.proxy == nil || p.proxy.Scheme != "https" || handshakes > 1
		},
	}
}

// verified is called when the server's certificate has been verified, unless that is
// turned off.
func (p *prober) verified(state tls.ConnectionState) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.handshake && len(state.PeerCertificates) > 0 {
		p.certificate = state.PeerCertificates[0]
	}
	return nil
}

// result returns the outcome of both steps.
func (p *prober) result(ctx context.Context, status string, err error, took time.Duration) probeResult {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := probeResult{}
	if err == nil {
		r.server = succeeded(fmt.Sprintf("%s responds with %s", p.place(), status))
	} else {
		r.server = p.serverOutcome(ctx, err)
	}
	r.tls = p.tlsOutcome(err)
	r.server.duration, r.tls.duration = took, took
	return r
}

// place names the server and the connection.
func (p *prober) place() string {
	place := p.server.Host
	if p.address != "" && p.address != place {
		place += " (" + p.address + ")"
	}
	if p.proxy != nil {
		place = p.server.Host + " by the proxy " + p.proxy.Host
	}
	return place
}

func (p *prober) serverOutcome(ctx context.Context, err error) outcome {
	var dns *net.DNSError
	var status *statusError
	reached := p.handshake || p.server.Scheme == "http" && p.address != ""
	switch {
	case errors.As(err, &status):
		return failed(ServerError, p.place()+": "+err.Error())
	case p.proxy != nil && (!p.handshake && p.server.Scheme == "https" || p.address == ""):
		return failed(ProxyFailed, fmt.Sprintf("proxy %s: %v", p.proxy.Host, plain(ctx, err)))
	case reached && p.server.Scheme == "https" && p.certificate == nil && !isSilent(err):
		return succeeded("connected to " + p.place()) // the step TLS has the error
	case reached && (ctx.Err() != nil || isTimeout(err)):
		return failed(NoResponse, fmt.Sprintf("connected to %s, and no response within %s", p.place(), p.limit))
	case reached && isSilent(err):
		return failed(NoResponse, fmt.Sprintf("connected to %s, which has closed the connection", p.place()))
	case reached:
		return failed(NoResponse, fmt.Sprintf("connected to %s, which has not responded: %v", p.place(), plain(ctx, err)))
	case errors.As(err, &dns) && dns.IsNotFound:
		return failed(HostNotFound, fmt.Sprintf("%s: no such host", dns.Name))
	case errors.As(err, &dns):
		return failed(HostNotFound, fmt.Sprintf("%s: the name server has not answered: %s", dns.Name, dns.Err))
	case errors.Is(err, syscall.ECONNREFUSED):
		return failed(ConnectionRefused, p.place()+": connection refused")
	case ctx.Err() != nil, isTimeout(err):
		return failed(ConnectionTimeout, fmt.Sprintf("%s: no connection within %s", p.place(), p.limit))
	}
	return failed(ConnectionFailed, fmt.Sprintf("%s: %v", p.place(), plain(ctx, err)))
}

// isSilent reports whether the server has sent nothing that explains the error.
func isSilent(err error) bool {
	return isTimeout(err) || errors.Is(err, context.Canceled) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}

// plain returns the error, or that the time is over.
func plain(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return errors.New("no response in time")
	}
	return err
}

func (p *prober) tlsOutcome(err error) outcome {
	switch {
	case p.server.Scheme != "https":
		return skipped("the server is an http URL: everything is sent unencrypted")
	case p.insecure && p.certificate != nil:
		return skipped("insecure-skip-tls-verify is set, the certificate is not verified: " + p.describe())
	case p.certificate != nil:
		return succeeded("certificate " + p.describe())
	case !p.handshake:
		return skipped("no connection")
	case err == nil:
		return skipped("the server has no certificate")
	}
	return p.tlsFailure(err)
}

func (p *prober) tlsFailure(err error) outcome {
	var (
		authority x509.UnknownAuthorityError
		name      x509.HostnameError
		invalid   x509.CertificateInvalidError
		refused   *tls.CertificateVerificationError
		record    tls.RecordHeaderError
	)
	if errors.As(err, &refused) && len(refused.UnverifiedCertificates) > 0 {
		p.certificate = refused.UnverifiedCertificates[0] // for the messages
	}
	switch {
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		if time.Now().Before(invalid.Cert.NotBefore) {
			return failed(CertificateNotYetValid, fmt.Sprintf("certificate %s is not valid before %s", subject(invalid.Cert), stamp(invalid.Cert.NotBefore)))
		}
		return failed(CertificateExpired, fmt.Sprintf("certificate %s expired %s", subject(invalid.Cert), stamp(invalid.Cert.NotAfter)))
	case errors.As(err, &authority):
		of := "the authorities of this machine, as the profile has none"
		if p.custom {
			of = "certificate-authority-data"
		}
		return failed(UnknownAuthority, fmt.Sprintf("certificate %s is not from %s", p.describe(), of))
	case errors.As(err, &name):
		return failed(WrongServerName, fmt.Sprintf("certificate %s is not for %s, but for %s", subject(name.Certificate), name.Host, namesIn(name.Certificate)))
	case refused != nil:
		return failed(CertificateInvalid, fmt.Sprintf("certificate %s: %v", p.describe(), refused.Err))
	case errors.As(err, &record), errors.Is(err, http.ErrSchemeMismatch):
		return failed(NotTLS, p.place()+" does not use TLS")
	case isSilent(err):
		return skipped("no response to the TLS handshake")
	}
	return failed(TLSFailed, fmt.Sprintf("TLS handshake with %s: %v", p.place(), err))
}

// describe describes the server's certificate, if there is one.
func (p *prober) describe() string {
	if p.certificate == nil {
		return "of the server"
	}
	return fmt.Sprintf("%s, issued by %q, valid until %s", subject(p.certificate), issuer(p.certificate), stamp(p.certificate.NotAfter))
}

func issuer(certificate *x509.Certificate) string {
	if name := certificate.Issuer.CommonName; name != "" {
		return name
	}
	return certificate.Issuer.String()
}

func subject(certificate *x509.Certificate) string {
	if name := certificate.Subject.CommonName; name != "" {
		return fmt.Sprintf("%q", name)
	}
	if len(certificate.DNSNames) > 0 {
		return fmt.Sprintf("%q", certificate.DNSNames[0])
	}
	return fmt.Sprintf("%q", certificate.Subject.String())
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// namesIn lists some names of a certificate.
func namesIn(certificate *x509.Certificate) string {
	const limit = 8
	names := append([]string(nil), certificate.DNSNames...)
	for _, ip := range certificate.IPAddresses {
		names = append(names, ip.String())
	}
	switch {
	case len(names) == 0:
		return "no name"
	case len(names) > limit:
		return strings.Join(names[:limit], ", ") + fmt.Sprintf(" and %d more", len(names)-limit)
	}
	return strings.Join(names, ", ")
}
