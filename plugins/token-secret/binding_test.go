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
	trusting := func(c *plugin.Cluster) { c.CAData = nil } // the system's certificate authorities
	proxied := func(c *plugin.Cluster) { c.ProxyURL = "http://evil.example.com" }
	renamed := func(c *plugin.Cluster) { c.TLSServerName = "evil.example.com" }
	for _, test := range []struct {
		name   string
		server string // none if empty
		ca     string
		key    string // of the credential
		change func(*plugin.Cluster)
		args   []string
		text   string // of the error, if there is to be one
	}{
		{name: "it goes to its server", server: memberURL},
		{name: "it goes to its server, however that is written", server: "https://C1.example.com:6443/"},
		{name: "with its certificate authority", server: memberURL, ca: ca},
		{name: "through a proxy, as the certificate authority tells who is there", server: memberURL, ca: ca, change: proxied},
		{name: "it goes nowhere else", server: memberURL, change: elsewhere, text: "the Secret is for another server than the profile's"},
		{name: "nor does a client certificate", server: memberURL, key: "tls.crt", change: elsewhere, text: "the Secret is for another server than the profile's"},
		{name: "nor to who has another certificate authority", server: memberURL, ca: otherCA, text: "the Secret's ca.crt is not the profile's certificate authority"},
		{name: "a certificate authority that is none is not ignored", server: memberURL, ca: "none", change: trusting, text: "the Secret's ca.crt is not"},
		{name: "nor to whoever is there", server: memberURL, change: unverified, text: "does not verify"},
		{name: "nor to whoever is there, with a certificate authority", server: memberURL, ca: ca, change: unverified, text: "does not verify"},
		{name: "nor through a proxy that may be anybody", server: memberURL, change: proxied, text: "proxy-url, which a Secret with the annotation rollcall.dev/server allows only if"},
		{name: "nor to another name", server: memberURL, change: renamed, text: "tls-server-name, which a Secret with the annotation rollcall.dev/server does not allow"},
		{name: "nor to another name of its certificate authority", server: memberURL, ca: ca, change: renamed, text: "tls-server-name, which a Secret with the annotation rollcall.dev/server does not allow"},
		{name: "an annotation that is no server is not ignored", server: "c1.example.com", text: "is not the https URL of a server"},
		{name: "without the annotation it goes anywhere", change: elsewhere},
		{name: "unless the annotation is required", args: []string{"--require-server"}, text: "the Secret has no annotation rollcall.dev/server, see --require-server"},
		{name: "which is met then", server: memberURL, args: []string{"--require-server"}},
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
			code, stdout, stderr := runFor(t, profile(test.change), `{"secretRef":{"name":"c1","key":"`+test.key+`"}}`, append(test.args, "--kubeconfig="+hub)...)
			if test.text == "" {
				g.Expect(stderr).To(BeEmpty())
				g.Expect(answered(t, stdout).Token).To(Equal("secret-1"))
				return
			}
			g.Expect(code).To(Equal(plugin.ExitFailed))
			g.Expect(stdout).To(BeEmpty())
			g.Expect(stderr).To(ContainSubstring(test.text))
			g.Expect(stderr).NotTo(ContainSubstring("secret-" + "1"))
		})
	}
}

func TestAKubeconfigNeedsNoAnnotation(t *testing.T) {
	g := NewWithT(t)
	ca, _ := newCertificate(t, time.Now().Add(time.Hour))
	hub := newHub(t, secret("clusters", "c1", map[string]string{
		"value": kubeconfigOf(t, memberURL, []byte(ca), func(_ *clientcmdapi.Cluster, u *clientcmdapi.AuthInfo) { u.Token = "secret-1" }),
	}))
	_, stdout, stderr := runFor(t, plugin.Cluster{Server: memberURL, CAData: []byte(ca)}, `{"name":"c1"}`, "--require-server", "--kubeconfig="+hub)
	g.Expect(stderr).To(BeEmpty())
	g.Expect(answered(t, stdout).Token).To(Equal("secret-1"))
}
