// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package credentials_test

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"

	"github.com/rollcall-dev/rollcall/pkg/credentials"
	"github.com/rollcall-dev/rollcall/pkg/credentials/providerfile"
)

func TestEndpointsRefused(t *testing.T) {
	ca := newServer(t).ca()
	for _, test := range []struct {
		name    string
		cluster clientcmdv1.Cluster
		kind    error
		text    string
	}{
		{"no server, which would mean localhost", clientcmdv1.Cluster{}, credentials.ErrInvalidProfile, "server: must not be empty"},
		{"a server without TLS", clientcmdv1.Cluster{Server: "http://c1"}, credentials.ErrInvalidProfile, "server: must be an https URL"},
		{"a server without a scheme", clientcmdv1.Cluster{Server: "c1.example.com"}, credentials.ErrInvalidProfile, `server: "c1.example.com" is not a URL like https://host:port`},
		{"an address and a port", clientcmdv1.Cluster{Server: "127.0.0.1:6443"}, credentials.ErrInvalidProfile, `server: "127.0.0.1:6443" is not a URL like https://host:port`},
		{"a host and a port, which could be a scheme", clientcmdv1.Cluster{Server: "localhost:6443"}, credentials.ErrInvalidProfile, `server: "localhost:6443" is not a URL like https://host:port`},
		{"a password, a host and a port", clientcmdv1.Cluster{Server: "me:s3cret@c1:6443"}, credentials.ErrInvalidProfile, "server: not a URL like https://host:port"},
		{"a password that is not escaped", clientcmdv1.Cluster{Server: "https://me:s3cret/%zz@c1"}, credentials.ErrInvalidProfile, "server: not a URL like https://host:port"},
		{"a server without a host", clientcmdv1.Cluster{Server: "https:///api"}, credentials.ErrInvalidProfile, "server: must have a host"},
		{"a server with a password", clientcmdv1.Cluster{Server: "https://me:s3cret@c1"}, credentials.ErrInvalidProfile, "server: must not have user information"},
		{"a server with a query", clientcmdv1.Cluster{Server: "https://c1?x=s3cret"}, credentials.ErrInvalidProfile, "server: must have neither query nor fragment"},
		{"a server that is no URL", clientcmdv1.Cluster{Server: "https://c1:port"}, credentials.ErrInvalidProfile, `server: "https://c1:port" is not a URL like https://host:port`},
		{"no verification of the server", clientcmdv1.Cluster{Server: "https://c1", InsecureSkipTLSVerify: true}, credentials.ErrDenied, "insecure-skip-tls-verify"},
		{"an invalid CA", clientcmdv1.Cluster{Server: "https://c1", CertificateAuthorityData: []byte("hello")}, credentials.ErrInvalidProfile, "certificate-authority-data"},
		{"a CA by path", clientcmdv1.Cluster{Server: "https://c1", CertificateAuthority: "/etc/passwd"}, credentials.ErrInvalidProfile, "certificate-authority: a profile cannot name a file"},
		{"a proxy that is no URL", clientcmdv1.Cluster{Server: "https://c1", ProxyURL: "http://proxy:x"}, credentials.ErrInvalidProfile, `proxy-url: "http://proxy:x" is not a URL like http://host:port`},
		{"a proxy and a port", clientcmdv1.Cluster{Server: "https://c1", ProxyURL: "proxy:3128"}, credentials.ErrInvalidProfile, `proxy-url: "proxy:3128" is not a URL like http://host:port`},
		{"a proxy's password and no scheme", clientcmdv1.Cluster{Server: "https://c1", ProxyURL: "me:s3cret@proxy:3128"}, credentials.ErrInvalidProfile, "proxy-url: not a URL like http://host:port"},

		{"a proxy with a password", clientcmdv1.Cluster{Server: "https://c1", ProxyURL: "http://me:s3cret@proxy"}, credentials.ErrInvalidProfile, "proxy-url: must not have user information"},
		{"a proxy of another kind", clientcmdv1.Cluster{Server: "https://c1", ProxyURL: "ftp://proxy"}, credentials.ErrInvalidProfile, "proxy-url: must be an http, https or socks5 URL"},
		{"extra arguments twice", clientcmdv1.Cluster{Server: "https://c1", Extensions: []clientcmdv1.NamedExtension{
			extension(argsExtension, `[]`), extension(argsExtension, `[]`),
		}}, credentials.ErrInvalidProfile, "is a duplicate"},
		{"an extension that is not JSON", clientcmdv1.Cluster{Server: "https://c1", Extensions: []clientcmdv1.NamedExtension{
			extension(configExtension, `{`),
		}}, credentials.ErrInvalidProfile, "not JSON"},
		{"more CA data than fits in a variable", clientcmdv1.Cluster{
			Server: "https://c1", CertificateAuthorityData: bytes.Repeat(ca, 100<<10/len(ca)+1),
		}, credentials.ErrInvalidProfile, "an environment variable holds 131072: certificate-authority-data has 1"},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			provider := plain("fake")
			provider.ExecConfig.ProvideClusterInfo = true
			resolver := newResolver(t, credentials.Options{Providers: []providerfile.Provider{provider}})
			_, err := resolver.Resolve(t.Context(), profileOf("c1", test.cluster))
			g.Expect(err).To(MatchError(test.kind))
			g.Expect(err).To(MatchError(ContainSubstring(test.text)))
			g.Expect(err.Error()).To(HavePrefix(`profile fleet/c1: provider "fake": `))
			g.Expect(err.Error()).NotTo(ContainSubstring("s3cret"))
		})
	}
}

func TestLargeCAWithoutClusterInfo(t *testing.T) {
	g := NewWithT(t)
	ca := newServer(t).ca()
	resolver := newResolver(t, credentials.Options{Providers: []providerfile.Provider{plain("fake")}})
	_, err := resolver.Resolve(t.Context(), profileOf("c1", clientcmdv1.Cluster{
		Server: "https://c1", CertificateAuthorityData: bytes.Repeat(ca, 200<<10/len(ca)),
	}))
	g.Expect(err).NotTo(HaveOccurred())
}

func TestAllowedServers(t *testing.T) {
	for _, test := range []struct {
		name    string
		allowed []string
		server  string
		denied  bool
	}{
		{"an empty list allows all", nil, "https://evil.example.org", false},
		{"a host by name, at any port", []string{"c1.example.com"}, "https://c1.example.com:6443", false},
		{"in any case", []string{"C1.example.com"}, "https://c1.EXAMPLE.com", false},
		{"a star stands for several labels", []string{"*.example.com"}, "https://a.b.example.com", false},
		{"a star does not stand for the dot before it", []string{"*.example.com"}, "https://example.com", true},
		{"another domain that ends alike", []string{"*.example.com"}, "https://evilexample.com", true},
		{"another domain that begins alike", []string{"c1.example.com"}, "https://c1.example.com.evil.org", true},
		{"a path that looks like a host", []string{"*.example.com"}, "https://evil.org/.example.com", true},
		{"a port that matches", []string{"10.0.*:6443"}, "https://10.0.3.4:6443", false},
		{"a port that does not", []string{"10.0.*:6443"}, "https://10.0.3.4", true},
		{"the default port of https", []string{"c1:443"}, "https://c1", false},
		{"a name that begins like the addresses", []string{"10.0.*:6443"}, "https://10.0.evil.org:6443", true},
		{"a name that begins and ends like the addresses", []string{"10.*.1"}, "https://10.evil.org.1", true},
		{"a name for a star", []string{"*:6443"}, "https://c1:6443", false},
		{"an IPv6 address that matches", []string{"[2001:db8:*]:443"}, "https://[2001:db8::7]", false},
		{"a name of digits and more", []string{"1*.example.com"}, "https://10.example.com", false},
		{"stars on both sides", []string{"*.fleet.*.com"}, "https://a.fleet.example.com", false},
		{"one of many", []string{"a", "b"}, "https://b", false},
		{"none of many", []string{"a", "b"}, "https://ab", true},
		{"an IPv6 address", []string{"[2001:db8::1]:443"}, "https://[2001:DB8::1]", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			provider := plain("fake")
			provider.Rollcall.AllowedServers = test.allowed
			resolver := newResolver(t, credentials.Options{Providers: []providerfile.Provider{provider}})
			_, err := resolver.Resolve(t.Context(), profileOf("c1", clientcmdv1.Cluster{Server: test.server}))
			if test.denied {
				g.Expect(err).To(MatchError(credentials.ErrDenied))
			} else {
				g.Expect(err).NotTo(HaveOccurred())
			}
		})
	}
}

func TestAllowedProxies(t *testing.T) {
	for _, test := range []struct {
		name             string
		servers, proxies []string
		proxy            string
		denied           bool
	}{
		{"any, where nothing is said", nil, nil, "http://proxy:3128", false},
		{"none with a list of servers, which a proxy could impersonate", []string{"c1"}, nil, "http://proxy:3128", true},
		{"no proxy needs no permission", []string{"c1"}, nil, "", false},
		{"one that is listed", []string{"c1"}, []string{"proxy"}, "http://PROXY:3128", false},
		{"one that is not", nil, []string{"proxy"}, "http://evil:3128", true},
		{"another port", nil, []string{"proxy:3128"}, "http://proxy:8080", true},
		{"the scheme's port", nil, []string{"proxy:80"}, "http://proxy", false},
		{"the port of SOCKS", nil, []string{"proxy:1080"}, "socks5://proxy", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			provider := plain("fake")
			provider.Rollcall.AllowedServers, provider.Rollcall.AllowedProxies = test.servers, test.proxies
			resolver := newResolver(t, credentials.Options{Providers: []providerfile.Provider{provider}})
			_, err := resolver.Resolve(t.Context(), profileOf("c1", clientcmdv1.Cluster{Server: "https://c1", ProxyURL: test.proxy}))
			if !test.denied {
				g.Expect(err).NotTo(HaveOccurred())
				return
			}
			g.Expect(err).To(MatchError(credentials.ErrDenied))
			g.Expect(err).To(MatchError(ContainSubstring("is not among the provider's allowedProxies")))
		})
	}
}

func TestAllowPlainHTTP(t *testing.T) {
	g := NewWithT(t)
	plugin := newFakePlugin(t)
	plugin.output("t1", future())
	var got []string
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, request *http.Request) {
		got = append(got, request.Header.Get("Authorization"))
	}))
	t.Cleanup(server.Close)
	provider := plugin.provider()
	provider.Rollcall.AllowPlainHTTP = true
	resolver := newResolver(t, credentials.Options{Providers: []providerfile.Provider{provider}})
	client := httpClient(t, resolve(t, resolver, profileOf("c1", clientcmdv1.Cluster{Server: server.URL})).RESTConfig())
	_, _, err := get(client, server.URL)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(got).To(Equal([]string{"Bearer t1"}))

	// It is the profile's server alone that may be plain.
	secure := httpClient(t, resolve(t, resolver, profileOf("c2", clientcmdv1.Cluster{Server: "https://" + server.Listener.Addr().String()})).RESTConfig())
	_, _, err = get(secure, server.URL)
	g.Expect(err).To(MatchError(credentials.ErrDenied))
	g.Expect(got).To(HaveLen(1))
}

func TestConnectionSettingsOfProfile(t *testing.T) {
	g := NewWithT(t)
	server := newServer(t)
	provider := plain("fake")
	provider.Rollcall.AllowInsecureSkipTLSVerify = true
	resolver := newResolver(t, credentials.Options{Providers: []providerfile.Provider{provider}})

	access := resolve(t, resolver, profileOf("c1", clientcmdv1.Cluster{
		Server: server.URL, TLSServerName: "c1.example.com", CertificateAuthorityData: server.ca(),
		ProxyURL: "http://proxy:3128", DisableCompression: true,
	}))
	for form, config := range map[string]*rest.Config{"managed": access.RESTConfig(), "portable": access.PortableRESTConfig()} {
		g.Expect(config.Host).To(Equal(server.URL), form)
		g.Expect(config.ServerName).To(Equal("c1.example.com"), form)
		g.Expect(config.CAData).To(Equal(server.ca()), form)
		g.Expect(config.Insecure).To(BeFalse(), form)
		g.Expect(config.DisableCompression).To(BeTrue(), form)
		g.Expect(config.QPS).To(BeEquivalentTo(-1), form)
		proxy, err := config.Proxy(nil)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(proxy.String()).To(Equal("http://proxy:3128"), form)
	}

	access = resolve(t, resolver, profileOf("c1", clientcmdv1.Cluster{Server: server.URL, InsecureSkipTLSVerify: true}))
	g.Expect(access.RESTConfig().Insecure).To(BeTrue())
	g.Expect(access.RESTConfig().Proxy).To(BeNil(), "a Proxy function would hide HTTPS_PROXY and make configs incomparable")
	g.Expect(access.PortableRESTConfig().Proxy).To(BeNil())
}
