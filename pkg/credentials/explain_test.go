// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package credentials_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"

	"github.com/rollcall-dev/rollcall/pkg/credentials"
	"github.com/rollcall-dev/rollcall/pkg/credentials/plugin"
	"github.com/rollcall-dev/rollcall/pkg/credentials/providerfile"
	"github.com/rollcall-dev/rollcall/pkg/inventory"
)

const (
	extensionConfig = "client.authentication.k8s.io/exec"
	extensionArgs   = "clusterprofiles.multicluster.x-k8s.io/exec/additional-args"
	extensionEnvs   = "clusterprofiles.multicluster.x-k8s.io/exec/additional-envs"
)

// The plugin, which notes what it gets, is compared with the explanation.
func TestExplainIsWhatRuns(t *testing.T) {
	t.Setenv("PWD_OF_TEST", "inherited")
	t.Setenv("HIDDEN_FROM_PLUGIN", "not inherited")
	t.Setenv("FROM_BOTH", "of the process")
	for name, change := range map[string]func(*providerfile.Provider){
		"the default policies": func(*providerfile.Provider) {},
		"policies that add": func(p *providerfile.Provider) {
			p.ProfileSourcedCLIArgsPolicy = providerfile.ProfileSourcedCLIArgsAppend
			p.ProfileSourcedEnvVarsPolicy = providerfile.ProfileSourcedEnvVarsAppendIfNotExists
		},
		"policies that replace": func(p *providerfile.Provider) {
			p.ProfileSourcedCLIArgsPolicy = providerfile.ProfileSourcedCLIArgsAppend
			p.ProfileSourcedEnvVarsPolicy = providerfile.ProfileSourcedEnvVarsReplace
		},
		"no information on the cluster": func(p *providerfile.Provider) { p.ExecConfig.ProvideClusterInfo = false },
		"few inherited variables": func(p *providerfile.Provider) {
			p.Rollcall.InheritedEnvVars = []string{"PWD_*", "FROM_BOTH", "GO*"}
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			fake, server := newFakePlugin(t), newServer(t, "Bearer t1")
			fake.output("t1", future())
			provider := fake.provider()
			provider.ExecConfig.ProvideClusterInfo = true
			provider.ExecConfig.Env = append(provider.ExecConfig.Env, clientcmdapi.ExecEnvVar{Name: "FROM_BOTH", Value: "of the provider"})
			change(&provider)
			resolver := newResolver(t, credentials.Options{Providers: []providerfile.Provider{provider}})
			profile := server.profile("c1",
				extension(extensionConfig, `{"clusterName":"c1","size":12345678901234567890}`),
				extension(extensionArgs, `{"args":["-test.v","-test.count=1"]}`),
				extension(extensionEnvs, `{"FROM_BOTH":"of the profile","EXTRA":"e"}`))

			explained, err := resolver.Explain(t.Context(), profile)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(fake.runs()).To(BeEmpty(), "Explain runs nothing")
			getAll(t, httpClient(t, resolve(t, resolver, profile).RESTConfig()), server.URL, 1, 200)
			runs := fake.runs()
			g.Expect(runs).To(HaveLen(1))

			run := explained.Plugin
			g.Expect(run.Path).To(Equal(executable(t)))
			args := []string{}
			for _, arg := range run.Args {
				args = append(args, arg.Value)
			}
			g.Expect(args).To(Equal(runs[0].Args))
			g.Expect(run.Request).To(MatchJSON(runs[0].ExecInfo))
			names := map[string]bool{}
			for _, variable := range run.Env {
				g.Expect(names).NotTo(HaveKey(variable.Name))
				names[variable.Name] = true
				value, found := runs[0].env(variable.Name)
				g.Expect(found).To(BeTrue(), variable.Name)
				if variable.Name != "KUBERNETES_EXEC_INFO" && variable.Value != "[redacted]" {
					g.Expect(variable.Value).To(Equal(value), variable.Name)
				}
			}
			for _, variable := range runs[0].Env {
				g.Expect(names).To(HaveKey(nameOf(variable)))
			}
		})
	}
}

func nameOf(variable string) string {
	for i := range variable {
		if variable[i] == '=' {
			return variable[:i]
		}
	}
	return variable
}

func TestExplainDropped(t *testing.T) {
	extensions := []clientcmdv1.NamedExtension{
		extension(extensionConfig, `{"clusterName":"c1"}`),
		extension(extensionArgs, `{"args":["--verbose","--token=letmein"]}`),
		extension(extensionEnvs, `{"A":"1","B":"2"}`),
	}
	for name, tc := range map[string]struct {
		change func(*providerfile.Provider)
		want   []string
	}{
		"by default, all": {
			func(*providerfile.Provider) {},
			[]string{
				extensionArgs + " [--verbose --token=[redacted]] []: the provider's profileSourcedCLIArgsPolicy is not Append",
				extensionEnvs + " [] [A B]: the provider's profileSourcedEnvVarsPolicy is Ignore",
				extensionConfig + " [] []: the provider's provideClusterInfo is not set",
			},
		},
		"with AppendIfNotExists, what the provider has": {
			func(p *providerfile.Provider) {
				p.ProfileSourcedCLIArgsPolicy = providerfile.ProfileSourcedCLIArgsAppend
				p.ProfileSourcedEnvVarsPolicy = providerfile.ProfileSourcedEnvVarsAppendIfNotExists
				p.ExecConfig.ProvideClusterInfo = true
			},
			[]string{extensionEnvs + " [] [A]: profileSourcedEnvVarsPolicy is AppendIfNotExists, and the provider sets them"},
		},
		"with Replace, nothing": {
			func(p *providerfile.Provider) {
				p.ProfileSourcedCLIArgsPolicy = providerfile.ProfileSourcedCLIArgsAppend
				p.ProfileSourcedEnvVarsPolicy = providerfile.ProfileSourcedEnvVarsReplace
				p.ExecConfig.ProvideClusterInfo = true
			},
			nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			provider := newFakePlugin(t).provider()
			provider.ExecConfig.Env = append(provider.ExecConfig.Env, clientcmdapi.ExecEnvVar{Name: "A", Value: "own"})
			tc.change(&provider)
			resolver := newResolver(t, credentials.Options{Providers: []providerfile.Provider{provider}})
			explained, err := resolver.Explain(t.Context(), profileOf("c1", clientcmdv1.Cluster{Server: "https://c1", Extensions: extensions}))
			g.Expect(err).NotTo(HaveOccurred())
			var got []string
			for _, d := range explained.Plugin.Dropped {
				got = append(got, fmt.Sprintf("%s %v %v: %s", d.Extension, d.Args, d.Variables, d.Reason))
			}
			g.Expect(got).To(Equal(tc.want))
		})
	}
}

func TestExplainHidesSecrets(t *testing.T) {
	g := NewWithT(t)
	t.Setenv("DATABASE", "hunter-inherited")
	provider := newFakePlugin(t).provider()
	provider.ExecConfig.ProvideClusterInfo = true
	provider.ProfileSourcedCLIArgsPolicy = providerfile.ProfileSourcedCLIArgsAppend
	provider.ExecConfig.Args = []string{"--password", "hunter-flag", "--api-key=hunter-key", "--url=https://u:hunter-url@host", "--region=eu"}
	provider.ExecConfig.Env = append(provider.ExecConfig.Env, clientcmdapi.ExecEnvVar{Name: "PLAIN", Value: "hunter-env"},
		clientcmdapi.ExecEnvVar{Name: "PATH", Value: "/bin"})
	resolver := newResolver(t, credentials.Options{Providers: []providerfile.Provider{provider}})
	profile := profileOf("c1", clientcmdv1.Cluster{Server: "https://c1", Extensions: []clientcmdv1.NamedExtension{
		extension(extensionConfig, `{"clusterName":"c1","password":"hunter-config","list":[{"token":"hunter-list"}]}`),
		extension(extensionArgs, `{"args":["--secret=hunter-arg"]}`),
	}})
	explained, err := resolver.Explain(t.Context(), profile)
	g.Expect(err).NotTo(HaveOccurred())
	text, err := json.Marshal(explained)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(text)).NotTo(ContainSubstring("hunter"))
	g.Expect(string(text)).To(And(ContainSubstring("--region=eu"), ContainSubstring(`"clusterName":"c1"`), ContainSubstring(`"/bin"`)))
}

func TestExplainCandidates(t *testing.T) {
	g := NewWithT(t)
	named := func(name string) providerfile.Provider {
		provider := newFakePlugin(t).provider()
		provider.Name = name
		return provider
	}
	denied := named("denied")
	denied.Rollcall.AllowedServers = []string{"other.example.com"}
	resolver := newResolver(t, credentials.Options{Providers: []providerfile.Provider{named("unused"), named("first"), named("second"), denied}})
	profile := profileOf("c1", clientcmdv1.Cluster{Server: "https://c1"})
	profile.Status.AccessProviders = nil
	for _, name := range []string{"absent", "second", "first"} {
		profile.Status.AccessProviders = append(profile.Status.AccessProviders,
			inventory.AccessProvider{Name: name, Cluster: clientcmdv1.Cluster{Server: "https://" + name}})
	}
	explained, err := resolver.Explain(t.Context(), profile)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(explained.Provider).To(Equal("first"))
	g.Expect(explained.Server).To(Equal("https://first"))
	g.Expect(explained.Candidates).To(Equal([]credentials.Candidate{
		{Name: "unused", Reason: "the profile does not list it"},
		{Name: "first", Chosen: true, Reason: "the first provider that the profile lists"},
		{Name: "second", Reason: "the profile lists it, and an earlier provider too"},
		{Name: "denied", Reason: "the profile does not list it"},
		{Name: "absent", Reason: "only the profile lists it, no provider is configured for it"},
	}))

	// What was decided before an error is shown, too.
	profile.Status.AccessProviders = []inventory.AccessProvider{{Name: "denied", Cluster: clientcmdv1.Cluster{Server: "https://c1"}}}
	explained, err = resolver.Explain(t.Context(), profile)
	g.Expect(err).To(MatchError(credentials.ErrDenied))
	g.Expect(explained.Provider).To(Equal("denied"))
	g.Expect(explained.Error).To(Equal(err.Error()))
	g.Expect(explained.Plugin).To(BeNil())
	_, resolveErr := resolver.Resolve(t.Context(), profile)
	g.Expect(err).To(Equal(resolveErr))

	profile.Status.AccessProviders = nil
	explained, err = resolver.Explain(t.Context(), profile)
	g.Expect(err).To(MatchError(credentials.ErrNoProvider))
	g.Expect(explained.Candidates).To(HaveLen(4))
}

func TestExplainOtherKinds(t *testing.T) {
	t.Run("a plugin that is missing", func(t *testing.T) {
		g := NewWithT(t)
		provider := newFakePlugin(t).provider()
		provider.ExecConfig.Command, provider.ExecConfig.InstallHint = "/absent/plugin", "get it"
		resolver := newResolver(t, credentials.Options{Providers: []providerfile.Provider{provider}})
		explained, err := resolver.Explain(t.Context(), profileOf("c1", clientcmdv1.Cluster{Server: "https://c1"}))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(explained.Plugin.Missing).To(ContainSubstring("/absent/plugin"))
		g.Expect(explained.Plugin.InstallHint).To(Equal("get it"))
	})
	t.Run("a plugin in this process", func(t *testing.T) {
		g := NewWithT(t)
		resolver := newResolver(t, credentials.Options{
			Providers: []providerfile.Provider{{Name: "fake", Rollcall: providerfile.Extensions{InProcess: "vault"}}},
			Plugins:   []func() plugin.Plugin{func() plugin.Plugin { return vault{} }},
		})
		explained, err := resolver.Explain(t.Context(), profileOf("c1", clientcmdv1.Cluster{Server: "https://c1"}))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(explained.Plugin.InProcess).To(Equal("vault"))
		g.Expect(explained.Plugin.Version).To(Equal("v1.0.0"))
		g.Expect(explained.Plugin.Env).To(HaveLen(1))
	})
	for name, tc := range map[string]struct {
		config rest.Config
		kind   credentials.CredentialKind
	}{
		"a token":           {rest.Config{BearerToken: "hunter2"}, credentials.KindToken},
		"a password":        {rest.Config{Username: "u", Password: "hunter2"}, credentials.KindBasic},
		"a password in URL": {rest.Config{Host: "https://u:hunter2@c1"}, credentials.KindBasic},
		"no credential":     {rest.Config{}, credentials.KindNone},
		"a command": {rest.Config{ExecProvider: &clientcmdapi.ExecConfig{
			APIVersion: "client.authentication.k8s.io/v1", InteractiveMode: clientcmdapi.NeverExecInteractiveMode, Command: "x", Args: []string{"--token", "hunter2"},
		}}, credentials.KindOfPlugin},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			if tc.config.Host == "" {
				tc.config.Host = "https://c1"
			}
			access := credentials.FromRESTConfig(&tc.config)
			defer access.Release()
			explained := access.Explain()
			g.Expect(explained.Kind).To(Equal(tc.kind))
			g.Expect(explained.Server).To(ContainSubstring("https://c1"))
			text, err := json.Marshal(explained)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(string(text)).NotTo(ContainSubstring("hunter2"))
			info, err := access.DescribeCredential(t.Context())
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(info.Kind).To(Equal(tc.kind))
		})
	}
}

func TestCredential(t *testing.T) {
	g := NewWithT(t)
	fake, server := newFakePlugin(t), newServer(t)
	expiry := future().UTC().Truncate(time.Second)
	fake.output("t1", expiry)
	access := resolve(t, onePlugin(t, fake), server.profile("c1"))
	for range 2 {
		info, err := access.DescribeCredential(t.Context())
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(info.Kind).To(Equal(credentials.KindToken))
		g.Expect(info.Expiry.Equal(expiry)).To(BeTrue())
	}
	g.Expect(fake.runs()).To(HaveLen(1))
	g.Expect(server.identities()).To(BeEmpty(), "no request is sent")

	failing := newFakePlugin(t)
	failing.set("code", "3")
	_, err := resolve(t, onePlugin(t, failing), server.profile("c2")).DescribeCredential(t.Context())
	g.Expect(err).To(MatchError(credentials.ErrPluginFailed))

	access.Release()
	_, err = access.DescribeCredential(t.Context())
	g.Expect(err).To(MatchError(credentials.ErrReleased))
}

func TestCredentialExpiryOfCertificates(t *testing.T) {
	g := NewWithT(t)
	notAfter := future().UTC().Truncate(time.Second)
	certificate, key := newCertificate(t, "user", notAfter)
	config := &rest.Config{Host: "https://c1", TLSClientConfig: rest.TLSClientConfig{CertData: []byte(certificate), KeyData: []byte(key)}}
	info, err := credentials.FromRESTConfig(config).DescribeCredential(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(info.Kind).To(Equal(credentials.KindCertificate))
	g.Expect(info.Expiry.Equal(notAfter)).To(BeTrue())
}
