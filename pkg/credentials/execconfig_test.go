// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package credentials_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/rollcall-dev/rollcall/pkg/credentials"
	"github.com/rollcall-dev/rollcall/pkg/inventory"
)

// execOptions allow the plugin's command.
func execOptions(p *fakePlugin) credentials.Options {
	return credentials.Options{AllowedCommands: []credentials.AllowedCommand{{Command: p.provider().ExecConfig.Command}}}
}

func TestResolverFromRESTConfig(t *testing.T) {
	g := NewWithT(t)
	server := newServer(t, "Bearer t-1")
	plugin := newFakePlugin(t)
	plugin.output("t-1", future())
	resolver := newResolver(t, execOptions(plugin))
	config := &rest.Config{Host: server.URL, ExecProvider: plugin.provider().ExecConfig}
	config.CAData = server.ca()
	for range 2 {
		access, err := resolver.FromRESTConfig(inventory.Key{Name: "x"}, config)
		g.Expect(err).NotTo(HaveOccurred())
		defer access.Release()
		getAll(t, httpClient(t, access.RESTConfig()), server.URL, 5, 200)
	}
	g.Expect(plugin.runs()).To(HaveLen(1), "equal configurations share a run")

	static, err := resolver.FromRESTConfig(inventory.Key{}, &rest.Config{Host: server.URL, BearerToken: "t-1", TLSClientConfig: config.TLSClientConfig})
	g.Expect(err).NotTo(HaveOccurred())
	defer static.Release()
	getAll(t, httpClient(t, static.RESTConfig()), server.URL, 1, 200)
}

func TestResolverFromRESTConfigRefuses(t *testing.T) {
	plugin := newFakePlugin(t)
	exec := plugin.provider().ExecConfig
	for _, test := range []struct {
		name   string
		change func(*rest.Config)
		want   string
	}{
		{"a token", func(c *rest.Config) { c.BearerToken = "s3cr3t" }, "BearerToken cannot be combined with ExecProvider"},
		{"a file", func(c *rest.Config) { c.CAFile = "/x" }, "CAFile cannot be combined with ExecProvider"},
		{"no TLS", func(c *rest.Config) { c.Host = "http://a" }, "server: must be an https URL, credentials are not sent unencrypted"},
		{"another command", func(c *rest.Config) { c.ExecProvider.Command = "/bin/other" }, `"/bin/other" is not among the allowed commands`},
		{"a terminal", func(c *rest.Config) { c.ExecProvider.InteractiveMode = "Always" }, "plugins are run without a terminal"},
	} {
		t.Run(test.name, func(t *testing.T) {
			config := &rest.Config{Host: "https://a", ExecProvider: exec.DeepCopy()}
			test.change(config)
			_, err := newResolver(t, execOptions(plugin)).FromRESTConfig(inventory.Key{Namespace: "ns", Name: "x"}, config)
			NewWithT(t).Expect(err).To(MatchError(And(HavePrefix("profile ns/x: "), HaveSuffix(test.want))))
		})
	}
	resolver := newResolver(t, credentials.Options{})
	resolver.Close()
	_, err := resolver.FromRESTConfig(inventory.Key{}, &rest.Config{Host: "https://a", ExecProvider: exec})
	NewWithT(t).Expect(err).To(MatchError(credentials.ErrClosed))
}

// Impersonate of a configuration with a plugin follows a switch.
func TestImpersonationWithPlugin(t *testing.T) {
	g := NewWithT(t)
	plugin := newFakePlugin(t)
	plugin.output("t", future())
	resolver := newResolver(t, execOptions(plugin))
	var seen string
	s := httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		seen = fmt.Sprint(r.Header["Authorization"], r.Header["Impersonate-User"])
	}))
	defer s.Close()
	as := func(user string, exec *clientcmdapi.ExecConfig) *credentials.Access {
		config := &rest.Config{Host: s.URL, ExecProvider: exec, Impersonate: rest.ImpersonationConfig{UserName: user}}
		config.Insecure = true
		if exec == nil {
			config.BearerToken = "static"
		}
		access, err := resolver.FromRESTConfig(inventory.Key{}, config)
		g.Expect(err).NotTo(HaveOccurred())
		return access
	}
	exec := plugin.provider().ExecConfig
	access := as("one", exec)
	defer access.Release()
	own := access.RESTConfig()
	own.TLSClientConfig, own.Transport = rest.TLSClientConfig{}, s.Client().Transport
	clients := []*http.Client{httpClient(t, access.RESTConfig()), httpClient(t, own)}
	for _, step := range []struct {
		next *credentials.Access
		want string
	}{
		{nil, "[Bearer t] [one]"},
		{as("two", exec), "[Bearer t] [two]"},
		{as("", exec), "[Bearer t] []"},
		{as("three", nil), "[Bearer static] [three]"},
		{as("four", exec), "[Bearer t] [four]"},
	} {
		if step.next != nil {
			g.Expect(access.Switch(step.next)).To(Succeed())
		}
		for _, client := range clients {
			status, _, err := get(client, s.URL)
			g.Expect(status, err).To(Equal(http.StatusOK))
			g.Expect(seen).To(Equal(step.want))
		}
	}
	g.Expect(as("one", exec).Fingerprint()).NotTo(Equal(as("two", exec).Fingerprint()))
}
