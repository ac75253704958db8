// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"crypto/x509"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	clientauthenticationv1 "k8s.io/client-go/pkg/apis/clientauthentication/v1"
	"k8s.io/client-go/rest"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	"k8s.io/client-go/transport"

	"github.com/rollcall-dev/rollcall/pkg/credentials/internal/authn"
	"github.com/rollcall-dev/rollcall/pkg/credentials/internal/rules"
	"github.com/rollcall-dev/rollcall/pkg/credentials/providerfile"
)

// endpoint is the address of a cluster's API server with its TLS settings. It
// does not change.
type endpoint struct {
	Server             string
	CAData             []byte
	ServerName         string
	Insecure           bool
	ProxyURL           string
	DisableCompression bool
	Impersonate        rest.ImpersonationConfig // only of a configuration, never of a profile
}

// newEndpoint returns the endpoint of an access provider of a profile, if the
// provider allows it.
func newEndpoint(cluster *clientcmdv1.Cluster, provider *providerfile.Provider) (*endpoint, error) {
	server, err := parseServer(cluster.Server, provider.Rollcall.AllowPlainHTTP)
	if err != nil {
		return nil, fmt.Errorf("%w: server: %w", ErrInvalidProfile, err)
	}
	e := &endpoint{
		Server:             cluster.Server,
		CAData:             append([]byte(nil), cluster.CertificateAuthorityData...),
		ServerName:         cluster.TLSServerName,
		Insecure:           cluster.InsecureSkipTLSVerify,
		DisableCompression: cluster.DisableCompression,
	}
	if !allowsServer(provider.Rollcall.AllowedServers, server) {
		return nil, fmt.Errorf("%w: server %s is not among the provider's allowedServers", ErrDenied, authn.HostPort(server))
	}

	switch {
	case e.Insecure && !provider.Rollcall.AllowInsecureSkipTLSVerify:
		return nil, fmt.Errorf("%w: insecure-skip-tls-verify: the provider does not set allowInsecureSkipTLSVerify", ErrDenied)
	case e.Insecure && len(e.CAData) > 0:
		return nil, fmt.Errorf("%w: insecure-skip-tls-verify and certificate-authority-data exclude each other", ErrInvalidProfile)
	case len(e.CAData) > 0 && !x509.NewCertPool().AppendCertsFromPEM(e.CAData):
		return nil, fmt.Errorf("%w: certificate-authority-data: no certificate in PEM format", ErrInvalidProfile)
	case cluster.CertificateAuthority != "" && len(e.CAData) == 0:
		return nil, fmt.Errorf("%w: certificate-authority: a profile cannot name a file, use certificate-authority-data", ErrInvalidProfile)
	}

	if cluster.ProxyURL != "" {
		proxy, err := parseProxy(cluster.ProxyURL)
		if err != nil {
			return nil, fmt.Errorf("%w: proxy-url: %w", ErrInvalidProfile, err)
		}
		if !allowsProxy(provider, proxy) {
			return nil, fmt.Errorf("%w: proxy-url: proxy %s is not among the provider's allowedProxies", ErrDenied, authn.HostPort(proxy))
		}
		e.ProxyURL = proxy.String()
	}
	return e, nil
}

// info returns what plugins get of the endpoint.
func (e *endpoint) info() clientauthenticationv1.Cluster {
	return clientauthenticationv1.Cluster{
		Server:                   e.Server,
		TLSServerName:            e.ServerName,
		InsecureSkipTLSVerify:    e.Insecure,
		CertificateAuthorityData: e.CAData,
		ProxyURL:                 e.ProxyURL,
		DisableCompression:       e.DisableCompression,
	}
}

// impersonating adds the headers of Impersonate to requests that have none.
func (e *endpoint) impersonating(base http.RoundTripper) http.RoundTripper {
	if e.Impersonate.UserName == "" {
		return base
	}
	return transport.NewImpersonatingRoundTripper(transport.ImpersonationConfig(e.Impersonate), base)
}

// proxy returns the function for a transport: the endpoint's own proxy, or that
// of the environment.
func (e *endpoint) proxy() func(*http.Request) (*url.URL, error) {
	if e.ProxyURL == "" {
		return http.ProxyFromEnvironment
	}
	proxy, err := url.Parse(e.ProxyURL)
	return func(*http.Request) (*url.URL, error) { return proxy, err }
}

// The errors of parseServer and parseProxy repeat no URL that may contain a
// password.

func parseServer(server string, plainHTTP bool) (*url.URL, error) {
	if server == "" {
		return nil, fmt.Errorf("must not be empty")
	}
	parsed, err := url.Parse(server)
	switch {
	case err != nil || !strings.Contains(server, "://"):
		return nil, notURL(server, "https://host:port")
	case parsed.User != nil:
		return nil, fmt.Errorf("must not have user information")
	case parsed.Scheme != "https" && (parsed.Scheme != "http" || !plainHTTP):
		return nil, fmt.Errorf("must be an https URL, credentials are not sent unencrypted")
	case parsed.Hostname() == "":
		return nil, fmt.Errorf("must have a host")
	case parsed.RawQuery != "" || parsed.ForceQuery || parsed.Fragment != "":
		return nil, fmt.Errorf("must have neither query nor fragment")
	}
	return parsed, nil
}

func parseProxy(proxy string) (*url.URL, error) {
	parsed, err := url.Parse(proxy)
	switch {
	case err != nil || !strings.Contains(proxy, "://"):
		return nil, notURL(proxy, "http://host:port")
	case parsed.User != nil:
		return nil, fmt.Errorf("must not have user information, no secret belongs in a profile")
	case parsed.Hostname() == "":
		return nil, fmt.Errorf("must have a host")
	}
	switch parsed.Scheme {
	case "http", "https", "socks5":
		return parsed, nil
	}
	return nil, fmt.Errorf("must be an http, https or socks5 URL")
}

// notURL is the error for a text that is not a URL. The text is shown unless it
// may contain more than a host and a path.
func notURL(text, example string) error {
	const limit = 200
	if len(text) > limit || strings.ContainsAny(text, "@?#") {
		return fmt.Errorf("not a URL like %s", example)
	}
	return fmt.Errorf("%q is not a URL like %s", text, example)
}

func allowsServer(patterns []string, server *url.URL) bool {
	if len(patterns) == 0 {
		return true
	}
	host, withPort := strings.ToLower(server.Hostname()), authn.HostPort(server)
	_, err := netip.ParseAddr(host)
	isName := err != nil
	for _, pattern := range patterns {
		pattern = strings.ToLower(pattern)
		if isName && isOfAddresses(pattern) {
			continue
		}
		if rules.Matches(pattern, host) || rules.Matches(pattern, withPort) {
			return true
		}
	}
	return false
}

// isOfAddresses reports whether the pattern matches IP addresses only: "10.0.*"
// does not match the name 10.0.example.com.
func isOfAddresses(pattern string) bool {
	if strings.HasPrefix(pattern, "[") {
		return true
	}
	host, _, _ := strings.Cut(pattern, ":")
	return strings.ContainsAny(host, "0123456789") && strings.Trim(host, "0123456789.*") == ""
}

// allowsProxy also protects the list of servers: with a proxy and a certificate
// authority of their own, the author of a profile could be any of them.
func allowsProxy(provider *providerfile.Provider, proxy *url.URL) bool {
	if len(provider.Rollcall.AllowedProxies) == 0 {
		return len(provider.Rollcall.AllowedServers) == 0
	}
	return allowsServer(provider.Rollcall.AllowedProxies, proxy)
}
