// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package credentials_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/rollcall-dev/rollcall/pkg/credentials"
)

func TestPasswordInURL(t *testing.T) {
	server := newServer(t, "Basic bWU6czNjcmV0QA==") // me:s3cret@
	address := strings.TrimPrefix(server.URL, "https://")
	for _, tc := range []struct {
		name   string
		config rest.Config
	}{
		{"of a URL", rest.Config{Host: "https://me:s3cret%40@" + address}},
		{"of a host and port", rest.Config{Host: "me:s3cret%40@" + address}},
		{"beside a token, before which client-go takes it", rest.Config{Host: "https://me:s3cret%40@" + address, BearerToken: "t1"}},
		{"beside another password", rest.Config{Host: "https://me:s3cret%40@" + address, Username: "you", Password: "other"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			tc.config.CAData = server.ca()
			access := credentials.FromRESTConfig(&tc.config)
			defer access.Release()
			g.Expect(access.Server()).To(Equal(server.URL))
			g.Expect(fmt.Sprint(access)).NotTo(ContainSubstring("s3cret"))
			for _, config := range []*rest.Config{access.RESTConfig(), access.PortableRESTConfig()} {
				g.Expect(config.Host).To(Equal(server.URL))
				client, err := rest.HTTPClientFor(config)
				g.Expect(err).NotTo(HaveOccurred())
				getAll(t, client, config.Host, 1, http.StatusOK)
				client.CloseIdleConnections()
			}
			g.Expect(tc.config.Host).To(ContainSubstring("s3cret"), "the caller's configuration does not change")
		})
	}
}

func TestPasswordInInvalidURL(t *testing.T) {
	for _, host := range []string{
		"https://me:s3cret@c1:port",
		"https://me:s3cret/@c1",
		"https://me:s3cret%@c1",
		"me:s3cret%@c1",
	} {
		t.Run(host, func(t *testing.T) {
			g := NewWithT(t)
			access := credentials.FromRESTConfig(&rest.Config{Host: host})
			defer access.Release()
			for _, config := range []*rest.Config{access.RESTConfig(), access.PortableRESTConfig()} {
				_, _, err := rest.DefaultServerUrlFor(config)
				g.Expect(err).To(MatchError(And(ContainSubstring("@c1"), Not(ContainSubstring("s3cret")))))
				_, err = url.Parse(config.Host)
				g.Expect(err).To(MatchError(And(ContainSubstring("@c1"), Not(ContainSubstring("s3cret")))))
			}
			g.Expect(access.Server()).NotTo(ContainSubstring("s3cret"))
		})
	}
}

func TestFingerprintOfPasswordInURL(t *testing.T) {
	g := NewWithT(t)
	fingerprint := func(host string) string {
		return credentials.FromRESTConfig(&rest.Config{Host: host}).Fingerprint()
	}
	g.Expect(fingerprint("https://me:s3cret@c1")).To(Equal(fingerprint("https://me:s3cret@c1")))
	g.Expect(fingerprint("https://me:s3cret@c1")).NotTo(Equal(fingerprint("https://me:other@c1")))
}

func TestFromRESTConfig(t *testing.T) {
	g := NewWithT(t)
	server := newServer(t, "Bearer t1")
	config := &rest.Config{Host: server.URL, BearerToken: "t1", TLSClientConfig: rest.TLSClientConfig{CAData: server.ca()}}
	access := credentials.FromRESTConfig(config)
	config.BearerToken = "changed later"
	g.Expect(access.Provider()).To(BeEmpty())
	g.Expect(access.Server()).To(Equal(server.URL))
	g.Expect(access.PortableRESTConfig().BearerToken).To(Equal("t1"))

	client := httpClient(t, access.RESTConfig())
	getAll(t, client, server.URL, 3, 200)
	watch, err := client.Get(server.URL + "/watch")
	g.Expect(err).NotTo(HaveOccurred())
	access.Release()
	_, err = watch.Body.Read(make([]byte, 1))
	g.Expect(err).To(HaveOccurred())
	g.Expect(watch.Body.Close()).To(Succeed())
	_, _, err = get(client, server.URL)
	g.Expect(err).To(MatchError(credentials.ErrReleased))
}

func TestStaticFingerprint(t *testing.T) {
	g := NewWithT(t)
	base := func() *rest.Config { return &rest.Config{Host: "https://c1", BearerToken: "s3cret"} }
	want := credentials.FromRESTConfig(base()).Fingerprint()
	g.Expect(credentials.FromRESTConfig(base()).Fingerprint()).To(Equal(want))
	tuned := base()
	tuned.QPS, tuned.UserAgent = 7, "me"
	g.Expect(credentials.FromRESTConfig(tuned).Fingerprint()).To(Equal(want), "settings of requests do not count")

	for what, change := range map[string]func(*rest.Config){
		"host":  func(c *rest.Config) { c.Host = "https://c2" },
		"token": func(c *rest.Config) { c.BearerToken = "other" },
		"CA":    func(c *rest.Config) { c.CAFile = "/ca" },
		"key":   func(c *rest.Config) { c.KeyData = []byte("key") },
		"user":  func(c *rest.Config) { c.Impersonate.UserName = "you" },
	} {
		config := base()
		change(config)
		g.Expect(credentials.FromRESTConfig(config).Fingerprint()).NotTo(Equal(want), what)
	}
	opaque := base()
	opaque.Wrap(func(rt http.RoundTripper) http.RoundTripper { return rt })
	g.Expect(credentials.FromRESTConfig(opaque).Fingerprint()).NotTo(Equal(credentials.FromRESTConfig(opaque).Fingerprint()))
}

func TestStaticExpiry(t *testing.T) {
	_, ok := credentials.FromRESTConfig(&rest.Config{Host: "https://c1.example"}).Expiry()
	NewWithT(t).Expect(ok).To(BeFalse())
}

func TestStaticRESTConfig(t *testing.T) {
	g := NewWithT(t)
	tlsConfig := rest.TLSClientConfig{ServerName: "c1", CertFile: "/cert", KeyFile: "/key"}
	for _, tc := range []struct {
		name       string
		have, want rest.Config
	}{
		{"token", rest.Config{BearerToken: "a"}, rest.Config{BearerToken: "a"}},
		{"password", rest.Config{Username: "me", Password: "x"}, rest.Config{Username: "me", Password: "x"}},
		{"token file", rest.Config{BearerToken: "a", BearerTokenFile: "/token"}, rest.Config{}},
		{"plugin", rest.Config{ExecProvider: &clientcmdapi.ExecConfig{Command: "/plugin"}}, rest.Config{}},
		{"TLS settings", rest.Config{TLSClientConfig: tlsConfig}, rest.Config{TLSClientConfig: tlsConfig}},
		{"requests", rest.Config{UserAgent: "me/1", QPS: 7}, rest.Config{UserAgent: "me/1", QPS: 7}},
	} {
		tc.have.Host, tc.want.Host = "https://c1", "https://c1"
		access := credentials.FromRESTConfig(&tc.have)
		config := access.RESTConfig()
		config.WrapTransport = nil
		g.Expect(config).To(Equal(&tc.want), tc.name)
		access.Release()
	}
}

func TestStaticImpersonation(t *testing.T) {
	g := NewWithT(t)
	var got http.Header
	config := &rest.Config{Host: "https://c1", BearerToken: "a", Impersonate: rest.ImpersonationConfig{UserName: "you"}}
	config.Transport = roundTripper(func(request *http.Request) (*http.Response, error) {
		got = request.Header
		return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
	})
	access := credentials.FromRESTConfig(config)
	defer access.Release()
	getAll(t, httpClient(t, access.RESTConfig()), "https://c1", 1, http.StatusOK)
	g.Expect(got.Get("Authorization")).To(Equal("Bearer a"))
	g.Expect(got.Get("Impersonate-User")).To(Equal("you"))

	own := access.RESTConfig()
	own.Impersonate.UserName = "someone"
	getAll(t, httpClient(t, own), "https://c1", 1, http.StatusOK)
	g.Expect(got.Get("Impersonate-User")).To(Equal("someone"))
}

// TestStaticUpgrade covers clients that make connections of their own, as for
// "exec" into pods.
func TestStaticDialWithContext(t *testing.T) {
	s := newServer(t, "Bearer a")
	access := credentials.FromRESTConfig(&rest.Config{
		Host: s.URL, BearerToken: "a", TLSClientConfig: rest.TLSClientConfig{CAData: s.ca()},
		// The connection ends with its context, like that of a tunnel process.
		Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
			if err == nil {
				context.AfterFunc(ctx, func() { _ = conn.Close() })
			}
			return conn, err
		},
	})
	defer access.Release()
	client := httpClient(t, access.RESTConfig())
	for range 3 {
		getAll(t, client, s.URL, 1, http.StatusOK)
		time.Sleep(20 * time.Millisecond)
	}
}

func TestStaticTransport(t *testing.T) {
	for name, end := range map[string]func(*testing.T, *credentials.Access){
		"switch": func(t *testing.T, access *credentials.Access) {
			NewWithT(t).Expect(access.Switch(kinds["static"](t, newServer(t, "Bearer b"), "b"))).To(Succeed())
		},
		"release": func(_ *testing.T, access *credentials.Access) { access.Release() },
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s := newServer(t, "Bearer a")
			own := s.Client()
			access := credentials.FromRESTConfig(&rest.Config{Host: s.URL, BearerToken: "a", Transport: own.Transport})
			defer access.Release()
			client := httpClient(t, access.RESTConfig())
			getAll(t, client, s.URL, 2, http.StatusOK)
			watch, err := client.Get(s.URL + "/watch")
			g.Expect(err).NotTo(HaveOccurred())
			failed := make(chan error)
			go func() {
				response, err := client.Post(s.URL+"/hang", "text/plain", strings.NewReader("create"))
				if err == nil {
					_ = response.Body.Close()
				}
				failed <- err
			}()
			<-s.hanging
			end(t, access)
			err = <-failed
			g.Expect(utilnet.IsProbableEOF(err)).To(BeTrue(), "%v", err)
			_, err = watch.Body.Read(make([]byte, 1))
			g.Expect(utilnet.IsProbableEOF(err)).To(BeTrue(), "%v", err)
			g.Expect(watch.Body.Close()).To(Succeed())
			<-s.watchEnded

			status, _, err := get(own, s.URL)
			g.Expect(err).NotTo(HaveOccurred(), "the caller's transport still works")
			g.Expect(status).To(Equal(http.StatusUnauthorized))
		})
	}
}

func TestStaticUpgrade(t *testing.T) {
	g := NewWithT(t)
	s := newServer(t, "Bearer a")
	access := kinds["static"](t, s, "a")
	config := access.RESTConfig()
	tlsConfig, err := rest.TLSConfigFor(config)
	g.Expect(err).NotTo(HaveOccurred())
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(s.ca())
	g.Expect(tlsConfig.RootCAs.Equal(pool)).To(BeTrue())
	own := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}}
	defer own.CloseIdleConnections()
	wrapped, err := rest.HTTPWrappersForConfig(config, roundTripper(own.RoundTrip))
	g.Expect(err).NotTo(HaveOccurred())
	getAll(t, &http.Client{Transport: wrapped, Timeout: time.Minute}, s.URL, 1, http.StatusOK)
	access.Release()
	_, _, err = get(&http.Client{Transport: wrapped}, s.URL)
	g.Expect(err).To(MatchError(credentials.ErrReleased))
}

func TestStaticCertificateRemoved(t *testing.T) {
	g := NewWithT(t)
	s := newServer(t, "admin", "Bearer user")
	certificate, key := newCertificate(t, "admin", future())
	access := credentials.FromRESTConfig(&rest.Config{Host: s.URL, TLSClientConfig: rest.TLSClientConfig{
		CAData: s.ca(), CertData: []byte(certificate), KeyData: []byte(key),
	}})
	defer access.Release()
	getAll(t, httpClient(t, access.RESTConfig()), s.URL, 1, http.StatusOK)
	g.Expect(s.identities()).To(Equal([]string{"admin"}))

	config := access.RESTConfig()
	config.CertData, config.KeyData = nil, nil
	config.BearerToken = "user"
	_, _, err := get(httpClient(t, config), s.URL)
	g.Expect(err).To(MatchError(ContainSubstring("make another access without the certificate")))
	g.Expect(s.identities()).To(HaveLen(1), "no request with the removed certificate")
}
