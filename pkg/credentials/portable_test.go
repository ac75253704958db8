// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package credentials_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"

	"github.com/rollcall-dev/rollcall/pkg/credentials"
	"github.com/rollcall-dev/rollcall/pkg/credentials/providerfile"
)

// TestPortableConfigRunsSamePlugin runs the same plugin by this package and by client-go.
func TestPortableConfigRunsSamePlugin(t *testing.T) {
	for _, test := range []struct {
		name       string
		apiVersion string
		info       bool
		change     func(*clientcmdv1.Cluster)
	}{
		{"without cluster information", "v1", false, func(*clientcmdv1.Cluster) {}},
		{"with cluster information", "v1", true, func(*clientcmdv1.Cluster) {}},
		{"in v1beta1", "v1beta1", true, func(*clientcmdv1.Cluster) {}},
		{"with a config", "v1", true, func(c *clientcmdv1.Cluster) {
			c.Extensions = append(c.Extensions, extension(configExtension, `{"b":[1,2.50,12345678901234567890],"a":{"<&>":"ü"}}`))
		}},
		{"with a server name", "v1", true, func(c *clientcmdv1.Cluster) { c.TLSServerName = "example.com" }},
		{"without compression", "v1", true, func(c *clientcmdv1.Cluster) { c.DisableCompression = true }},
		{"without verification", "v1", true, func(c *clientcmdv1.Cluster) {
			c.CertificateAuthorityData, c.InsecureSkipTLSVerify = nil, true
		}},
		{"with a profile's arguments and variables", "v1", false, func(c *clientcmdv1.Cluster) {
			c.Extensions = append(c.Extensions,
				extension(argsExtension, `["--from-profile"]`), extension(envsExtension, `{"FROM_PROFILE":"yes"}`))
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			plugin, server := newFakePlugin(t), newServer(t, "Bearer t1")
			plugin.set("output", execCredential("client.authentication.k8s.io/"+test.apiVersion, map[string]string{"token": "t1"}))
			provider := plugin.provider()
			provider.Rollcall.AllowInsecureSkipTLSVerify = true
			provider.ProfileSourcedCLIArgsPolicy = providerfile.ProfileSourcedCLIArgsAppend
			provider.ProfileSourcedEnvVarsPolicy = providerfile.ProfileSourcedEnvVarsReplace
			provider.ExecConfig.ProvideClusterInfo = test.info
			provider.ExecConfig.APIVersion = "client.authentication.k8s.io/" + test.apiVersion
			resolver := newResolver(t, credentials.Options{Providers: []providerfile.Provider{provider}})
			profile := server.profile("c1")
			test.change(&profile.Status.AccessProviders[0].Cluster)
			access := resolve(t, resolver, profile)

			getAll(t, httpClient(t, access.RESTConfig()), server.URL, 1, 200)
			portable := httpClient(t, access.PortableRESTConfig())
			defer portable.CloseIdleConnections()
			getAll(t, portable, server.URL, 1, 200)

			runs := plugin.runs()
			g.Expect(runs).To(HaveLen(2))
			g.Expect(runs[0].Args).To(Equal(runs[1].Args))
			g.Expect(strings.TrimSpace(runs[1].ExecInfo)).To(Equal(runs[0].ExecInfo), "to the byte")
			ours, _ := runs[0].env("FROM_PROFILE")
			theirs, _ := runs[1].env("FROM_PROFILE")
			g.Expect(ours).To(Equal(theirs))
		})
	}
}

func TestExecInfo(t *testing.T) {
	g := NewWithT(t)
	plugin, server := newFakePlugin(t), newServer(t, "Bearer t1")
	plugin.output("t1", future())
	provider := plugin.provider()
	provider.ExecConfig.ProvideClusterInfo = true
	resolver := newResolver(t, credentials.Options{Providers: []providerfile.Provider{provider}})
	profile := server.profile("c1", extension(configExtension, `{"clusterName":"c9"}`))
	getAll(t, httpClient(t, resolve(t, resolver, profile).RESTConfig()), server.URL, 1, 200)

	ca, err := json.Marshal(server.ca())
	g.Expect(err).NotTo(HaveOccurred())
	run := plugin.runs()[0]
	g.Expect(run.ExecInfo).To(MatchJSON(`{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1",
		"spec":{"cluster":{"server":"` + server.URL + `","certificate-authority-data":` + string(ca) + `,
		"config":{"clusterName":"c9"}},"interactive":false}}`))
	path, found := run.env("PATH")
	g.Expect(found).To(BeTrue(), "the environment is inherited")
	g.Expect(path).To(Equal(os.Getenv("PATH")))
}

func TestPortableConfigAllowsOneCommand(t *testing.T) {
	g := NewWithT(t)
	exec := resolve(t, newResolver(t, credentials.Options{Providers: []providerfile.Provider{plain("fake")}}),
		profileOf("c1", clientcmdv1.Cluster{Server: "https://c1"})).PortableRESTConfig().ExecProvider
	g.Expect(exec.InteractiveMode).To(Equal(clientcmdapi.NeverExecInteractiveMode))
	g.Expect(exec.PluginPolicy).To(Equal(clientcmdapi.PluginPolicy{
		PolicyType: clientcmdapi.PluginPolicyAllowlist,
		Allowlist:  []clientcmdapi.AllowlistEntry{{Command: "/plugins/plain"}},
	}))
	g.Expect(exec.Config).To(BeNil())
}
