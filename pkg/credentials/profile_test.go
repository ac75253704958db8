// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package credentials_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"

	"github.com/rollcall-dev/rollcall/pkg/credentials"
	"github.com/rollcall-dev/rollcall/pkg/credentials/providerfile"
	"github.com/rollcall-dev/rollcall/pkg/inventory"
)

const (
	configExtension = "client.authentication.k8s.io/exec"
	argsExtension   = "clusterprofiles.multicluster.x-k8s.io/exec/additional-args"
	envsExtension   = "clusterprofiles.multicluster.x-k8s.io/exec/additional-envs"
)

// plain returns a provider whose plugin is never run.
func plain(name string) providerfile.Provider {
	return providerfile.Provider{
		Name: name,
		ExecConfig: &clientcmdapi.ExecConfig{
			APIVersion: "client.authentication.k8s.io/v1",
			Command:    "/plugins/plain",
			Args:       []string{"login"},
			Env:        []clientcmdapi.ExecEnvVar{{Name: "B", Value: "file"}, {Name: "A", Value: "file"}},
		},
	}
}

func TestChoiceOfProvider(t *testing.T) {
	offer := func(names ...string) []inventory.AccessProvider {
		var offers []inventory.AccessProvider
		for _, name := range names {
			offers = append(offers, inventory.AccessProvider{
				Name:    name,
				Cluster: clientcmdv1.Cluster{Server: "https://" + name + ".example.com"},
			})
		}
		return offers
	}
	moved := offer("b")
	moved[0].Cluster.Server = "https://deprecated.example.com"

	for _, test := range []struct {
		name                string
		offered, deprecated []inventory.AccessProvider
		server              string
	}{
		{"the order of the providers decides, not the profile's", offer("c", "b"), nil, "https://b.example.com"},
		{"the deprecated list is read too", nil, offer("c"), "https://c.example.com"},
		{"of the same name in both, the deprecated loses", offer("b"), moved, "https://b.example.com"},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			resolver := newResolver(t, credentials.Options{
				Providers: []providerfile.Provider{plain("a"), plain("b"), plain("c")},
			})
			profile := &inventory.Profile{}
			profile.Status.AccessProviders = test.offered
			profile.Status.CredentialProviders = test.deprecated
			access, err := resolver.Resolve(t.Context(), profile)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(access.Server()).To(Equal(test.server))
		})
	}
}

func TestNoProvider(t *testing.T) {
	g := NewWithT(t)
	resolver := newResolver(t, credentials.Options{Providers: []providerfile.Provider{plain("a"), plain("b")}})
	profile := profileOf("c1", clientcmdv1.Cluster{Server: "https://c1"})

	_, err := resolver.Resolve(t.Context(), profile)
	g.Expect(err).To(MatchError(credentials.ErrNoProvider))
	g.Expect(err).To(MatchError(`profile fleet/c1: no matching provider: the profile lists access providers "fake", the provider file has "a", "b"`))

	_, err = newResolver(t, credentials.Options{}).Resolve(t.Context(), profile)
	g.Expect(err).To(MatchError(`profile fleet/c1: no matching provider: the profile lists access providers "fake", but no provider is configured: set --clusterprofile-provider-file`))

	profile.Status.AccessProviders = nil
	_, err = resolver.Resolve(t.Context(), profile)
	g.Expect(err).To(MatchError(`profile fleet/c1: no matching provider: the profile lists access providers none, the provider file has "a", "b"`))
}

func TestProfileArgsAndEnvVars(t *testing.T) {
	const (
		appendArgs = providerfile.ProfileSourcedCLIArgsAppend
		ignoreArgs = providerfile.ProfileSourcedCLIArgsIgnore
		ifNot      = providerfile.ProfileSourcedEnvVarsAppendIfNotExists
		replace    = providerfile.ProfileSourcedEnvVarsReplace
		ignoreEnvs = providerfile.ProfileSourcedEnvVarsIgnore
	)
	for _, test := range []struct {
		name       string
		argsPolicy providerfile.ProfileSourcedCLIArgsPolicy
		envsPolicy providerfile.ProfileSourcedEnvVarsPolicy
		args, envs string
		wantArgs   string
		wantEnv    string
		kind       error
	}{
		{"are left out by default", "", "", `["x"]`, `{"C":"p"}`, "login", "B=file A=file", nil},
		{"are left out by policy, even where they are wrong", ignoreArgs, ignoreEnvs, `7`, `{"LD_PRELOAD":1}`, "login", "B=file A=file", nil},
		{"arguments as an array are appended", appendArgs, "", `["x","y"]`, ``, "login x y", "B=file A=file", nil},
		{"arguments as an object are appended", appendArgs, "", `{"args":["x","y"]}`, ``, "login x y", "B=file A=file", nil},
		{"null arguments", appendArgs, ifNot, `null`, `null`, "login", "B=file A=file", nil},
		{"of a variable in both, the file's value holds", "", ifNot, ``, `{"D":"p","C":"p","A":"p"}`, "login", "B=file A=file C=p D=p", nil},
		{"of a variable in both, the profile's value holds", "", replace, ``, `{"D":"p","C":"p","A":"p"}`, "login", "B=file A=p C=p D=p", nil},
		{"arguments that are no strings are refused", appendArgs, "", `["x",1]`, ``, "", "", credentials.ErrInvalidProfile},
		{"arguments that are null are refused", appendArgs, "", `["x",null]`, ``, "", "", credentials.ErrInvalidProfile},
		{"another field beside args is refused", appendArgs, "", `{"args":[],"more":[]}`, ``, "", "", credentials.ErrInvalidProfile},
		{"args given twice are refused", appendArgs, "", `{"args":["x"],"args":["y"]}`, ``, "", "", credentials.ErrInvalidProfile},
		{"a variable given twice is refused", "", ifNot, ``, `{"C":"1","C":"2"}`, "", "", credentials.ErrInvalidProfile},
		{"a single string is refused", appendArgs, "", `"x"`, ``, "", "", credentials.ErrInvalidProfile},
		{"an argument with a NUL is refused", appendArgs, "", `["x\u0000y"]`, ``, "", "", credentials.ErrInvalidProfile},
		{"variables that are no strings are refused", "", ifNot, ``, `{"C":1}`, "", "", credentials.ErrInvalidProfile},
		{"variables as a list are refused", "", ifNot, ``, `["C=1"]`, "", "", credentials.ErrInvalidProfile},
		{"a name with a = is refused", "", ifNot, ``, `{"C=D":"1"}`, "", "", credentials.ErrInvalidProfile},
		{"a value with a NUL is refused", "", ifNot, ``, `{"C":"\u0000"}`, "", "", credentials.ErrInvalidProfile},
		{"what loads code is denied", "", ifNot, ``, `{"LD_PRELOAD":"/evil/x.so"}`, "", "", credentials.ErrDenied},
		{"what another program calls its proxy is denied", "", ifNot, ``, `{"grpc_proxy":"http://evil"}`, "", "", credentials.ErrDenied},
		{"what another program calls its authorities is denied", "", ifNot, ``, `{"TOOL_CA_BUNDLE":"/evil"}`, "", "", credentials.ErrDenied},
		{"what another program calls its credentials is denied", "", ifNot, ``, `{"TOOL_TOKEN_FILE":"/etc/x"}`, "", "", credentials.ErrDenied},
		{"what another program calls its server is denied", "", ifNot, ``, `{"VAULT_ADDR":"https://evil"}`, "", "", credentials.ErrDenied},
		{"what finds programs is denied", "", replace, ``, `{"PATH":"/evil"}`, "", "", credentials.ErrDenied},
		{"what redirects requests is denied, in any case", "", ifNot, ``, `{"https_proxy":"http://evil"}`, "", "", credentials.ErrDenied},
		{"what names credentials is denied", "", ifNot, ``, `{"GOOGLE_APPLICATION_CREDENTIALS":"/x"}`, "", "", credentials.ErrDenied},
		{"what names the hub is denied", "", ifNot, ``, `{"KUBECONFIG":"/x"}`, "", "", credentials.ErrDenied},
		{"the request itself is denied", "", replace, ``, `{"KUBERNETES_EXEC_INFO":"{}"}`, "", "", credentials.ErrDenied},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			provider := plain("fake")
			provider.ProfileSourcedCLIArgsPolicy = test.argsPolicy
			provider.ProfileSourcedEnvVarsPolicy = test.envsPolicy
			resolver := newResolver(t, credentials.Options{Providers: []providerfile.Provider{provider}})
			profile := profileOf("c1", clientcmdv1.Cluster{Server: "https://c1", Extensions: []clientcmdv1.NamedExtension{
				extension(argsExtension, test.args), extension(envsExtension, test.envs),
			}})
			access, err := resolver.Resolve(t.Context(), profile)
			if test.kind != nil {
				g.Expect(err).To(MatchError(test.kind))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			exec := access.PortableRESTConfig().ExecProvider
			g.Expect(strings.Join(exec.Args, " ")).To(Equal(test.wantArgs))
			g.Expect(printEnv(exec)).To(Equal(test.wantEnv))
		})
	}
}

func FuzzExtensions(f *testing.F) {
	f.Add(`["x"]`, `{"A":"b"}`, `{"clusterName":"c1"}`)
	f.Add(`{"args":["x"]}`, `{"LD_PRELOAD":"x"}`, `[]`)
	f.Add(`{"args":null}`, `null`, `"`)
	f.Fuzz(func(t *testing.T, args, envs, config string) {
		provider := plain("fake")
		provider.ProfileSourcedCLIArgsPolicy = providerfile.ProfileSourcedCLIArgsAppend
		provider.ProfileSourcedEnvVarsPolicy = providerfile.ProfileSourcedEnvVarsReplace
		provider.ExecConfig.ProvideClusterInfo = true
		resolver := newResolver(t, credentials.Options{Providers: []providerfile.Provider{provider}})
		access, err := resolver.Resolve(t.Context(), profileOf("c1", clientcmdv1.Cluster{
			Server: "https://c1", Extensions: []clientcmdv1.NamedExtension{
				extension(argsExtension, args), extension(envsExtension, envs), extension(configExtension, config),
			},
		}))
		if err != nil {
			if !errors.Is(err, credentials.ErrInvalidProfile) && !errors.Is(err, credentials.ErrDenied) {
				t.Errorf("%v is of no kind", err)
			}
			return
		}
		exec := access.PortableRESTConfig().ExecProvider
		if len(exec.Args) == 0 || exec.Args[0] != "login" {
			t.Errorf("the provider's arguments do not come first: %q", exec.Args)
		}
		for _, variable := range exec.Env {
			if strings.ContainsAny(variable.Name+variable.Value, "\x00") || strings.HasPrefix(strings.ToUpper(variable.Name), "LD_") {
				t.Errorf("variable %q came through", variable)
			}
		}
	})
}

func printEnv(exec *clientcmdapi.ExecConfig) string {
	var variables []string
	for _, variable := range exec.Env {
		variables = append(variables, variable.Name+"="+variable.Value)
	}
	return strings.Join(variables, " ")
}

func TestProfilesAreIsolated(t *testing.T) {
	g := NewWithT(t)
	provider := plain("fake")
	provider.ProfileSourcedCLIArgsPolicy = providerfile.ProfileSourcedCLIArgsAppend
	provider.ProfileSourcedEnvVarsPolicy = providerfile.ProfileSourcedEnvVarsReplace
	// Room behind the last element is where a careless append writes.
	provider.ExecConfig.Args = append(make([]string, 0, 10), "login")
	provider.ExecConfig.Env = append(make([]clientcmdapi.ExecEnvVar, 0, 10), clientcmdapi.ExecEnvVar{Name: "A", Value: "file"})
	resolver := newResolver(t, credentials.Options{Providers: []providerfile.Provider{provider}})

	var accesses []*credentials.Access
	for i := range 5 {
		accesses = append(accesses, resolve(t, resolver, profileOf(fmt.Sprintf("c%d", i), clientcmdv1.Cluster{
			Server: "https://c", Extensions: []clientcmdv1.NamedExtension{
				extension(argsExtension, fmt.Sprintf(`["--cluster=%d"]`, i)),
				extension(envsExtension, fmt.Sprintf(`{"A":"%d","ONLY_%d":"x"}`, i, i)),
			},
		})))
	}
	// Callers may change what they get.
	mangled := accesses[0].PortableRESTConfig().ExecProvider
	mangled.Args[0], mangled.Env[0].Value = "mangled", "mangled"
	provider.ExecConfig.Args[0] = "mangled"

	for i, access := range accesses {
		exec := access.PortableRESTConfig().ExecProvider
		g.Expect(exec.Args).To(Equal([]string{"login", fmt.Sprintf("--cluster=%d", i)}))
		g.Expect(printEnv(exec)).To(Equal(fmt.Sprintf("A=%d ONLY_%d=x", i, i)))
	}
}

func TestFingerprint(t *testing.T) {
	g := NewWithT(t)
	provider := plain("fake")
	provider.ProfileSourcedEnvVarsPolicy = providerfile.ProfileSourcedEnvVarsReplace
	provider.ExecConfig.Env[0].Value = "s3cret"
	resolver := newResolver(t, credentials.Options{Providers: []providerfile.Provider{provider}})
	base := func() clientcmdv1.Cluster {
		return clientcmdv1.Cluster{Server: "https://c1", Extensions: []clientcmdv1.NamedExtension{
			extension(envsExtension, `{"C":"1","D":"2","E":"3","F":"4"}`),
		}}
	}
	fingerprint := func(name string, change func(*clientcmdv1.Cluster)) string {
		cluster := base()
		change(&cluster)
		return resolve(t, resolver, profileOf(name, cluster)).Fingerprint()
	}
	same := func(*clientcmdv1.Cluster) {}
	want := fingerprint("c1", same)
	for range 20 {
		g.Expect(fingerprint("c2", same)).To(Equal(want), "neither the profile's name nor the order of a map matters")
	}
	g.Expect(want).NotTo(ContainSubstring("s3cret"))
	for what, change := range map[string]func(*clientcmdv1.Cluster){
		"server":      func(c *clientcmdv1.Cluster) { c.Server = "https://c2" },
		"server name": func(c *clientcmdv1.Cluster) { c.TLSServerName = "c2" },
		"proxy":       func(c *clientcmdv1.Cluster) { c.ProxyURL = "http://proxy" },
		"compression": func(c *clientcmdv1.Cluster) { c.DisableCompression = true },
		"environment": func(c *clientcmdv1.Cluster) { c.Extensions[0] = extension(envsExtension, `{"C":"2"}`) },
	} {
		g.Expect(fingerprint("c1", change)).NotTo(Equal(want), what)
	}
}

func TestPrintedAccessHasNoSecret(t *testing.T) {
	g := NewWithT(t)
	provider := plain("fake")
	provider.ExecConfig.Env[0].Value = "s3cret"
	resolver := newResolver(t, credentials.Options{Providers: []providerfile.Provider{provider}})
	access := resolve(t, resolver, profileOf("c1", clientcmdv1.Cluster{Server: "https://c1"}))
	static := credentials.FromRESTConfig(&rest.Config{Host: "https://c1", BearerToken: "s3cret"})
	for _, format := range []string{"%v", "%+v", "%#v", "%s", "%q"} {
		g.Expect(fmt.Sprintf(format, access)).To(Equal(`access to https://c1 by provider "fake"`))
		g.Expect(fmt.Sprintf(format, static)).To(Equal(`access to https://c1`))
		g.Expect(fmt.Sprintf(format, []any{access, static, provider, resolver})).NotTo(ContainSubstring("s3cret"))
	}
}
