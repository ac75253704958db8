// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package tokensecret_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/rollcall-dev/rollcall/pkg/credentials/plugin"
	tokensecret "github.com/rollcall-dev/rollcall/plugins/token-secret"
)

func TestASecretIsForItsServer(t *testing.T) {
	ca, caKey := newCertificate(t, time.Now().Add(time.Hour))
	otherCA, _ := newCertificate(t, time.Now().Add(time.Hour))
	profile := func(change func(*plugin.Cluster)) plugin.Cluster {
		cluster := plugin.Cluster{Server: memberURL, CAData: []byte(ca)}
		if change != nil {
			change(&cluster)
		}
		return cluster
	}
	elsewhere := func(c *plugin.Cluster) { c.Server = "https://evil.example.com:6443" }
	unverified := func(c *plugin.Cluster) { c.CAData, c.InsecureSkipTLSVerify = nil, true }
	trusting := func(c *plugin.Cluster) { c.CAData = nil } // the certificate authorities of the system
	proxied := func(c *plugin.Cluster) { c.ProxyURL = "http://evil.example.com" }
	renamed := func(c *plugin.Cluster) { c.TLSServerName = "evil.example.com" }
	for _, test := range []struct {
		name   string
		server string // of the annotation; "" for none
		ca     string
		key    string // of the credential
		change func(*plugin.Cluster)
		args   []string
		text   string // of the expected error
	}{
		{name: "the Secret's server", server: memberURL},
		{name: "another spelling of the Secret's server", server: "https://C1.example.com:6443/"},
		{name: "the Secret's certificate authority", server: memberURL, ca: ca},
		{name: "a proxy, with the Secret's certificate authority", server: memberURL, ca: ca, change: proxied},
		{name: "another server", server: memberURL, change: elsewhere, text: "the Secret is for another server than the profile's"},
		{name: "another server for a client certificate", server: memberURL, key: "tls.crt", change: elsewhere, text: "the Secret is for another server than the profile's"},
		{name: "another certificate authority", server: memberURL, ca: otherCA, text: "the Secret's ca.crt is not the profile's certificate authority"},
		{name: "an invalid certificate authority in the Secret", server: memberURL, ca: "none", change: trusting, text: "the Secret's ca.crt is not"},
		{name: "no verification", server: memberURL, change: unverified, text: "does not verify"},
		{name: "no verification, with a certificate authority in the Secret", server: memberURL, ca: ca, change: unverified, text: "does not verify"},
		{name: "a proxy without a certificate authority in the Secret", server: memberURL, change: proxied, text: "proxy-url, which a Secret with the annotation rollcall.dev/server allows only if"},
		{name: "another server name", server: memberURL, change: renamed, text: "tls-server-name, which a Secret with the annotation rollcall.dev/server does not allow"},
		{name: "another server name, with a certificate authority in the Secret", server: memberURL, ca: ca, change: renamed, text: "tls-server-name, which a Secret with the annotation rollcall.dev/server does not allow"},
		{name: "an invalid annotation", server: "c1.example.com", text: "is not the https URL of a server"},
		{name: "any server, with --any-server", change: elsewhere, args: []string{"--any-server"}},
		{name: "another server than that of the annotation, with --any-server", server: memberURL, change: elsewhere, args: []string{"--any-server"}, text: "the Secret is for another server than the profile's"},
		{name: "no annotation", text: "the Secret has no annotation rollcall.dev/server, see --any-server"},
		{name: "no annotation for a client certificate", key: "tls.crt", text: "the Secret has no annotation rollcall.dev/server, see --any-server"},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			s := secret("clusters", "c1", map[string]string{"token": "secret-1", "tls.crt": ca, "tls.key": caKey})
			if test.server != "" {
				s.Annotations = map[string]string{tokensecret.AnnotationServer: test.server}
			}
			if test.ca != "" {
				s.Data["ca.crt"] = []byte(test.ca)
			}
			if test.key == "" {
				test.key = "token"
			}
			hub := newHub(t, s)
			code, stdout, stderr := runFor(t, profile(test.change), `{"secretRef":{"name":"c1","key":"`+test.key+`"}}`, append([]string{"--any-server=false", "--kubeconfig=" + hub}, test.args...)...)
			if test.text == "" {
				g.Expect(stderr).To(BeEmpty())
				g.Expect(printed(t, stdout).Token).To(Equal("secret-1"))
				return
			}
			g.Expect(code).To(Equal(plugin.ExitFailed))
			g.Expect(stdout).To(BeEmpty())
			g.Expect(stderr).To(ContainSubstring(test.text))
			g.Expect(stderr).NotTo(ContainSubstring("secret-" + "1"))
		})
	}
}

func TestAServerIsRequiredByDefault(t *testing.T) {
	if tokensecret.New().AnyServer {
		t.Error("a profile can send any token to any server")
	}
}

func TestKubeconfigNeedsNoAnnotation(t *testing.T) {
	g := NewWithT(t)
	ca, _ := newCertificate(t, time.Now().Add(time.Hour))
	hub := newHub(t, secret("clusters", "c1", map[string]string{
		"value": kubeconfigOf(t, memberURL, []byte(ca), func(_ *clientcmdapi.Cluster, u *clientcmdapi.AuthInfo) { u.Token = "secret-1" }),
	}))
	_, stdout, stderr := runFor(t, plugin.Cluster{Server: memberURL, CAData: []byte(ca)}, `{"name":"c1"}`, "--any-server=false", "--kubeconfig="+hub)
	g.Expect(stderr).To(BeEmpty())
	g.Expect(printed(t, stdout).Token).To(Equal("secret-1"))
}
