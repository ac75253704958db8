// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package tokensecret_test

import (
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/rollcall-dev/rollcall/pkg/credentials/plugin"
)

const memberURL = "https://c1.example.com:6443"

func TestClientCertificates(t *testing.T) {
	g := NewWithT(t)
	certificate, key := newCertificate(t, time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC))
	old, oldKey := newCertificate(t, time.Unix(1e9, 0))
	hub := newHub(t,
		secret("clusters", "c1", map[string]string{"tls.crt": certificate, "tls.key": key + "\n"}),
		secret("clusters", "other", map[string]string{"admin.crt": certificate, "admin.key": key, "token": "secret-1"}),
		secret("clusters", "alone", map[string]string{"tls.crt": certificate}),
		secret("clusters", "wrong", map[string]string{"tls.crt": certificate, "tls.key": oldKey}),
		secret("clusters", "old", map[string]string{"tls.crt": old, "tls.key": oldKey}),
	)
	for _, config := range []string{
		`{"secretRef":{"name":"c1"}}`,
		`{"secretRef":{"name":"c1","key":"tls.crt"}}`,
		`{"secretRef":{"name":"other","key":"admin.crt"}}`,
	} {
		code, stdout, stderr := run(t, config, "--kubeconfig="+hub)
		g.Expect(stderr).To(BeEmpty(), config)
		g.Expect(code).To(Equal(plugin.ExitOK))
		g.Expect(printed(t, stdout)).To(Equal(status{
			ClientCertificateData: strings.TrimSpace(certificate),
			ClientKeyData:         strings.TrimSpace(key),
			ExpirationTimestamp:   "2100-01-01T00:00:00Z",
		}))
	}
	for name, text := range map[string]string{
		"alone": `secret clusters/alone, key "tls.crt": the Secret has no private key for the client certificate`,
		"wrong": `secret clusters/wrong, key "tls.crt": the client certificate and its private key do not match`,
		"old":   `secret clusters/old, key "tls.crt": the client certificate expired at 2001-09-09T01:46:40Z`,
	} {
		code, stdout, stderr := run(t, `{"secretRef":{"name":"`+name+`"}}`, "--kubeconfig="+hub)
		g.Expect(code).To(Equal(plugin.ExitFailed))
		g.Expect(stdout).To(BeEmpty())
		g.Expect(stderr).To(ContainSubstring(text))
	}
}

func TestKubeconfigs(t *testing.T) {
	certificate, key := newCertificate(t, time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC))
	ca, _ := newCertificate(t, time.Now().Add(time.Hour))
	otherCA, _ := newCertificate(t, time.Now().Add(time.Hour))
	withToken := func(_ *clientcmdapi.Cluster, u *clientcmdapi.AuthInfo) { u.Token = "secret-1\n" }
	asProfile := plugin.Cluster{Server: memberURL, CAData: []byte(ca)}
	for _, test := range []struct {
		name    string
		change  func(*clientcmdapi.Cluster, *clientcmdapi.AuthInfo)
		profile func(*plugin.Cluster)
		config  string
		want    status
		text    string // of the expected error
	}{
		{name: "a token", change: withToken, want: status{Token: "secret-1"}},
		{
			name: "a token that is a JWT",
			change: func(_ *clientcmdapi.Cluster, u *clientcmdapi.AuthInfo) {
				u.Token = jwt(`{"exp":4102444800}`)
			},
			want: status{Token: jwt(`{"exp":4102444800}`), ExpirationTimestamp: "2100-01-01T00:00:00Z"},
		},
		{
			name: "a client certificate",
			change: func(_ *clientcmdapi.Cluster, u *clientcmdapi.AuthInfo) {
				u.ClientCertificateData, u.ClientKeyData = []byte(certificate), []byte(key)
			},
			want: status{ClientCertificateData: certificate, ClientKeyData: key, ExpirationTimestamp: "2100-01-01T00:00:00Z"},
		},
		{name: "the form of kubeconfig-secretreader", change: withToken, config: `{"name":"c1","key":"value","namespace":"clusters","context":"main"}`, want: status{Token: "secret-1"}},
		{name: "the same without key and context", change: withToken, config: `{"name":"c1"}`, want: status{Token: "secret-1"}},
		{name: "a context by name", change: withToken, config: `{"secretRef":{"name":"c1","key":"value","context":"main"}}`, want: status{Token: "secret-1"}},
		{name: "a missing context", change: withToken, config: `{"secretRef":{"name":"c1","context":"x"}}`, text: `the kubeconfig has no context "x"`},

		{name: "another spelling of the server", change: func(c *clientcmdapi.Cluster, u *clientcmdapi.AuthInfo) {
			c.Server, u.Token = "https://C1.example.com:6443/", "secret-1"
		}, want: status{Token: "secret-1"}},
		{name: "other text around the certificates", change: withToken, profile: func(c *plugin.Cluster) {
			c.CAData = []byte("# our CA\n" + ca + ca)
		}, want: status{Token: "secret-1"}},
		{name: "another server", change: withToken, profile: func(c *plugin.Cluster) { c.Server = "https://evil.example.com:6443" }, text: "its server is not the profile's server"},
		{name: "another port", change: withToken, profile: func(c *plugin.Cluster) { c.Server = "https://c1.example.com" }, text: "its server is not the profile's server"},
		{name: "another path", change: withToken, profile: func(c *plugin.Cluster) { c.Server += "/x" }, text: "its server is not the profile's server"},
		{name: "no TLS", change: func(c *clientcmdapi.Cluster, u *clientcmdapi.AuthInfo) {
			c.Server, u.Token = "http://c1.example.com:6443", "secret-1"
		}, profile: func(c *plugin.Cluster) { c.Server = "http://c1.example.com:6443" }, text: "its server is not the profile's server"},
		{name: "another certificate authority", change: withToken, profile: func(c *plugin.Cluster) { c.CAData = []byte(otherCA) }, text: "its certificate authority is not the profile's"},
		{name: "an additional certificate authority", change: withToken, profile: func(c *plugin.Cluster) { c.CAData = []byte(ca + otherCA) }, text: "its certificate authority is not the profile's"},
		{name: "no certificate authority", change: withToken, profile: func(c *plugin.Cluster) { c.CAData = nil }, text: "its certificate authority is not the profile's"},
		{name: "no verification", change: withToken, profile: func(c *plugin.Cluster) { c.CAData, c.InsecureSkipTLSVerify = nil, true }, text: "the profile does not verify the server's certificate"},
		{name: "another server name", change: withToken, profile: func(c *plugin.Cluster) { c.TLSServerName = "evil" }, text: "its tls-server-name is not the profile's"},
		{name: "verification that the kubeconfig lacks", change: func(c *clientcmdapi.Cluster, u *clientcmdapi.AuthInfo) {
			c.CertificateAuthorityData, c.InsecureSkipTLSVerify, u.Token = nil, true, "secret-1"
		}, want: status{Token: "secret-1"}},
		{name: "a proxy, and no verification in the kubeconfig", change: func(c *clientcmdapi.Cluster, u *clientcmdapi.AuthInfo) {
			c.CertificateAuthorityData, c.InsecureSkipTLSVerify, u.Token = nil, true, "secret-1"
		}, profile: func(c *plugin.Cluster) { c.ProxyURL = "http://evil:3128" }, text: "the profile has another proxy"},
		{name: "the kubeconfig's own proxy without verification", change: func(c *clientcmdapi.Cluster, u *clientcmdapi.AuthInfo) {
			c.CertificateAuthorityData, c.InsecureSkipTLSVerify, u.Token = nil, true, "secret-1"
			c.ProxyURL = "http://proxy:3128"
		}, profile: func(c *plugin.Cluster) { c.ProxyURL = "http://proxy:3128" }, want: status{Token: "secret-1"}},
		{name: "a proxy, and verification as in the kubeconfig", change: withToken, profile: func(c *plugin.Cluster) {
			c.ProxyURL = "http://proxy:3128"
		}, want: status{Token: "secret-1"}},
		{name: "a certificate authority by path", change: func(c *clientcmdapi.Cluster, u *clientcmdapi.AuthInfo) {
			c.CertificateAuthorityData, c.CertificateAuthority, u.Token = nil, "/ca.pem", "secret-1"
		}, text: "certificate-authority is a path"},

		{name: "exec", change: func(_ *clientcmdapi.Cluster, u *clientcmdapi.AuthInfo) {
			u.Exec = &clientcmdapi.ExecConfig{APIVersion: "client.authentication.k8s.io/v1", Command: "/bin/sh", InteractiveMode: "Never"}
		}, text: "its user runs a program (exec), which is not allowed in a Secret"},
		{name: "exec beside a token", change: func(_ *clientcmdapi.Cluster, u *clientcmdapi.AuthInfo) {
			u.Token = "secret-1"
			u.Exec = &clientcmdapi.ExecConfig{APIVersion: "client.authentication.k8s.io/v1", Command: "/bin/sh", InteractiveMode: "Never"}
		}, text: "its user runs a program (exec)"},
		{name: "an auth-provider", change: func(_ *clientcmdapi.Cluster, u *clientcmdapi.AuthInfo) {
			u.AuthProvider = &clientcmdapi.AuthProviderConfig{Name: "oidc"}
		}, text: "its user has an auth-provider"},
		{name: "a password", change: func(_ *clientcmdapi.Cluster, u *clientcmdapi.AuthInfo) {
			u.Username, u.Password = "secret-1", "secret-1"
		}, text: "its user has a password"},
		{name: "a token by path", change: func(_ *clientcmdapi.Cluster, u *clientcmdapi.AuthInfo) { u.TokenFile = "/etc/passwd" }, text: "its user's credential is a path"},
		{name: "a certificate by path", change: func(_ *clientcmdapi.Cluster, u *clientcmdapi.AuthInfo) { u.ClientCertificate = "/x" }, text: "its user's credential is a path"},
		{name: "impersonation", change: func(_ *clientcmdapi.Cluster, u *clientcmdapi.AuthInfo) { u.Token, u.Impersonate = "secret-1", "root" }, text: "its user impersonates another"},
		{name: "nothing", change: func(*clientcmdapi.Cluster, *clientcmdapi.AuthInfo) {}, text: "its user has neither a token nor a client certificate"},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			hub := newHub(t, secret("clusters", "c1", map[string]string{
				"value": kubeconfigOf(t, memberURL, []byte(ca), test.change),
			}))
			cluster := asProfile
			if test.profile != nil {
				test.profile(&cluster)
			}
			if test.config == "" {
				test.config = `{"secretRef":{"name":"c1"}}`
			}
			code, stdout, stderr := runFor(t, cluster, test.config, "--kubeconfig="+hub)
			if test.text != "" {
				g.Expect(code).To(Equal(plugin.ExitFailed))
				g.Expect(stdout).To(BeEmpty())
				g.Expect(stderr).To(ContainSubstring(`secret clusters/c1, key "value": `))
				g.Expect(stderr).To(ContainSubstring(test.text))
				g.Expect(stderr).NotTo(ContainSubstring("secret-" + "1"))
				return
			}
			g.Expect(stderr).To(BeEmpty())
			got := printed(t, stdout)
			test.want.ClientCertificateData = strings.TrimSpace(test.want.ClientCertificateData)
			got.ClientCertificateData = strings.TrimSpace(got.ClientCertificateData)
			test.want.ClientKeyData = strings.TrimSpace(test.want.ClientKeyData)
			got.ClientKeyData = strings.TrimSpace(got.ClientKeyData)
			g.Expect(got).To(Equal(test.want))
		})
	}
}

func TestWhatIsNoCredentialIsNotSent(t *testing.T) {
	_, key := newCertificate(t, time.Now().Add(time.Hour))
	for _, test := range []struct {
		name, data, config, text string
	}{
		{"a private key", key, `{"secretRef":{"name":"c1","key":"x"}}`, "neither a token, nor a client certificate, nor a kubeconfig"},
		{"JSON", `{"password":"secret-1"}`, `{"secretRef":{"name":"c1","key":"x"}}`, "neither a token, nor a client certificate, nor a kubeconfig"},
		{"a text", "secret-1 and more", `{"secretRef":{"name":"c1","key":"x"}}`, "neither a token, nor a client certificate, nor a kubeconfig"},
		{"an empty kubeconfig", "apiVersion: v1\nkind: Config\n", `{"name":"c1","key":"x"}`, "the kubeconfig has no current context"},
		{"a token instead of a kubeconfig", "secret-1", `{"name":"c1","key":"x"}`, "not a kubeconfig"},
		{"a token and a context", "secret-1", `{"secretRef":{"name":"c1","key":"x","context":"y"}}`, "the profile names a context, but the content is not a kubeconfig"},
		{"none of the keys", "secret-1", `{"secretRef":{"name":"c1"}}`, "secret clusters/c1: the Secret has none of the keys token, tls.crt, kubeconfig, value"},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			hub := newHub(t, secret("clusters", "c1", map[string]string{"x": test.data}))
			code, stdout, stderr := run(t, test.config, "--kubeconfig="+hub)
			g.Expect(code).To(Equal(plugin.ExitFailed))
			g.Expect(stdout).To(BeEmpty())
			g.Expect(stderr).To(ContainSubstring(test.text))
			g.Expect(stderr).NotTo(ContainSubstring("secret-" + "1"))
		})
	}
}
