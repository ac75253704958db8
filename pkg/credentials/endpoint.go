// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"crypto/x509"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"

	"github.com/rollcall-dev/rollcall/pkg/credentials/internal/authn"
)

// endpoint is where a cluster's API server is and how TLS is done with it. It
// is not changed once made.
type endpoint struct {
	Server             string
	CAData             []byte
	ServerName         string
	Insecure           bool
	ProxyURL           string
	DisableCompression bool
}

// newEndpoint takes the endpoint from an access provider of a profile, as far
// as the provider allows it.
func newEndpoint(cluster *clientcmdv1.Cluster, provider *Provider) (*endpoint, error) {
	server, err := parseServer(cluster.Server, provider.AllowPlainHTTP)
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
	if !allowsServer(provider.AllowedServers, server) {
		return nil, fmt.Errorf("%w: server %s is not among the provider's allowedServers", ErrDenied, authn.HostPort(server))
	}

	switch {
	case e.Insecure && !provider.AllowInsecureSkipTLSVerify:
		return nil, fmt.Errorf("%w: insecure-skip-tls-verify: the provider does not set allowInsecureSkipTLSVerify", ErrDenied)
	case e.Insecure && len(e.CAData) > 0:
		return nil, fmt.Errorf("%w: insecure-skip-tls-verify and certificate-authority-data exclude each other", ErrInvalidProfile)
	case len(e.CAData) > 0 && !x509.NewCertPool().AppendCertsFromPEM(e.CAData):
		return nil, fmt.Errorf("%w: certificate-authority-data: no certificate in PEM form", ErrInvalidProfile)
	case cluster.CertificateAuthority != "" && len(e.CAData) == 0:
		return nil, fmt.Errorf("%w: certificate-authority: a path means nothing in a profile, use certificate-authority-data", ErrInvalidProfile)
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

// proxy returns the function for a transport: the endpoint's own proxy, or else
// that of the environment.
func (e *endpoint) proxy() func(*http.Request) (*url.URL, error) {
	if e.ProxyURL == "" {
		return http.ProxyFromEnvironment
	}
	proxy, err := url.Parse(e.ProxyURL)
	return func(*http.Request) (*url.URL, error) { return proxy, err }
}

// Errors of these repeat no URL that may have a password in it.

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
		return nil, fmt.Errorf("must be an https URL, credentials are not sent in clear")
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

// notURL is the error for a text that is no URL, which is shown unless there may
// be more in it than a host and a path.
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
		if globMatches(pattern, host) || globMatches(pattern, withPort) {
			return true
		}
	}
	return false
}

// isOfAddresses tells whether the pattern is one of IP addresses. Of a name such
// as 10.0.example.com, "10.0.*" says nothing.
func isOfAddresses(pattern string) bool {
	if strings.HasPrefix(pattern, "[") {
		return true
	}
	host, _, _ := strings.Cut(pattern, ":")
	return strings.ContainsAny(host, "0123456789") && strings.Trim(host, "0123456789.*") == ""
}

// allowsProxy guards the list of servers, too: whoever chooses the proxy and the
// certificate authority of a server can be that server.
func allowsProxy(provider *Provider, proxy *url.URL) bool {
	if len(provider.AllowedProxies) == 0 {
		return len(provider.AllowedServers) == 0
	}
	return allowsServer(provider.AllowedProxies, proxy)
}

func anyGlobMatches(patterns []string, text string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool { return globMatches(pattern, text) })
}

// globMatches tells whether the text is the pattern, in which "*" stands for
// any characters.
func globMatches(pattern, text string) bool {
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return pattern == text
	}
	first, last := parts[0], parts[len(parts)-1]
	if !strings.HasPrefix(text, first) {
		return false
	}
	text = text[len(first):]
	for _, part := range parts[1 : len(parts)-1] {
		_, rest, found := strings.Cut(text, part)
		if !found {
			return false
		}
		text = rest
	}
	return strings.HasSuffix(text, last)
}
