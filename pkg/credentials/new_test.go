// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package credentials_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/go-logr/logr/funcr"
	"github.com/go-logr/logr/testr"
	. "github.com/onsi/gomega"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"

	"github.com/rollcall-dev/rollcall/pkg/credentials"
	"github.com/rollcall-dev/rollcall/pkg/credentials/plugin"
	"github.com/rollcall-dev/rollcall/pkg/credentials/providerfile"
)

const goodFile = `{"providers":[{"name":"secretreader",
  "execConfig":{"apiVersion":"client.authentication.k8s.io/v1","command":"/plugins/x"}}]}`

func FuzzParseFile(f *testing.F) {
	f.Add([]byte(goodFile))
	f.Add([]byte("providers:\n- name: a\n  execConfig: {command: x}"))
	f.Add([]byte("providers: [{}, null, 7]"))
	f.Add([]byte("providers: []\n---\n- {providers: x}"))
	f.Add([]byte("providers:\n- name: a\n  rollcall: {inProcess: granting}\n- name: b\n  rollcall: {inheritedEnvVars: []}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := providerfile.Parse("x", data)
		if (file == nil) == (err == nil) {
			t.Fatal("neither or both of a file and an error")
		}
		if err != nil {
			return
		}
		// What is accepted can be used.
		resolver, err := credentials.New(credentials.Options{
			Providers:  file.Providers,
			PluginDirs: []string{"/plugins"},
			Plugins:    []func() plugin.Plugin{newGranting},
		})
		if err != nil {
			return // a plugin that this program does not have
		}
		defer resolver.Close()
		for _, provider := range file.Providers {
			profile := profileOf("c1", clientcmdv1.Cluster{Server: "https://c1"})
			profile.Status.AccessProviders[0].Name = provider.Name
			if access, err := resolver.Resolve(t.Context(), profile); err == nil {
				if exec := access.PortableRESTConfig().ExecProvider; exec != nil && !filepath.IsAbs(exec.Command) {
					t.Errorf("command %q would be looked for in PATH", exec.Command)
				}
			}
		}
	})
}

func TestNewErrors(t *testing.T) {
	relative := plain("a")
	relative.ExecConfig.Command = "x"
	unnamed := plain("")
	for _, test := range []struct {
		name    string
		options credentials.Options
		text    string
	}{
		{"a provider from Go", credentials.Options{Providers: []providerfile.Provider{unnamed}}, `credentials: Options: providers[0] (""): name: must not be empty`},
		{"a name without folders to look in", credentials.Options{Providers: []providerfile.Provider{relative}}, `execConfig.command: "x" is not a path, and there is no plugin folder to find it in: set --credential-plugin-dir (Options.PluginDirs), or use an absolute path`},
		{"a file that is not there", credentials.Options{ProviderFile: "/does/not/exist"}, "credentials: provider file: open /does/not/exist"},
		{"an empty folder", credentials.Options{PluginDirs: []string{""}}, "credentials: PluginDirs[0]: must not be empty"},
		{"a plugin that this program does not have", credentials.Options{Providers: []providerfile.Provider{{Name: "a", Rollcall: providerfile.Extensions{InProcess: "p"}}}}, `Options: providers[0] ("a"): rollcall.inProcess: "p" is not a plugin of this program, which has none`},
		{"a nil plugin", credentials.Options{Plugins: []func() plugin.Plugin{nil}}, "Plugins[0]: must not be nil"},
		{"a duplicate plugin", credentials.Options{Plugins: []func() plugin.Plugin{newGranting, newGranting}}, `Plugins[1]: the name "granting" is already used`},
		{"an empty allowed command", credentials.Options{AllowedCommands: []credentials.AllowedCommand{{}}}, "AllowedCommands[0]: the command must not be empty"},
		{"an invalid digest", credentials.Options{AllowedCommands: []credentials.AllowedCommand{{Command: "x", SHA256: []string{"abc"}}}}, `AllowedCommands[0]: "abc" is not a SHA-256 digest`},
		{"a negative number", credentials.Options{MaxConcurrentRuns: -1}, "MaxConcurrentRuns"},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			test.options.Logger = testr.New(t)
			_, err := credentials.New(test.options)
			g.Expect(err).To(MatchError(ContainSubstring(test.text)))
		})
	}
}

func TestProviderFileIsReadByResolve(t *testing.T) {
	synctest.Test(t, testProviderFileIsRead)
}

func testProviderFileIsRead(t *testing.T) {
	g := NewWithT(t)
	var lines []string
	path := filepath.Join(t.TempDir(), "providers.yaml")
	write := func(content string) { g.Expect(os.WriteFile(path, []byte(content), 0o600)).To(Succeed()) }
	entry := func(name string) string {
		return "- name: " + name + "\n  execConfig: {apiVersion: client.authentication.k8s.io/v1, command: /x}\n"
	}
	write("providers:\n" + entry("fake"))
	resolver := newResolver(t, credentials.Options{
		ProviderFile: path,
		Logger:       funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{}),
	})
	profile := profileOf("c1", clientcmdv1.Cluster{Server: "https://c1"})
	resolves := func() error {
		settle(t, resolver)
		_, err := resolver.Resolve(t.Context(), profile)
		return err
	}
	g.Expect(resolves()).To(Succeed())
	g.Expect(lines).To(BeEmpty())

	write("providers:\n" + entry("other"))
	g.Expect(resolves()).To(MatchError(credentials.ErrNoProvider))
	write("providers:\n" + entry("fake"))
	g.Expect(resolves()).To(Succeed())
	g.Expect(lines).To(HaveLen(2))

	for _, broken := range []string{"", "providers:\n- nam: fake\n", "providers:\n" + entry("./fake") + entry("./fake")} {
		lines = nil
		write(broken)
		for range 3 {
			g.Expect(resolves()).To(Succeed(), "the previous version is kept")
		}
		g.Expect(lines).To(HaveLen(1), "logged once")
		g.Expect(lines[0]).To(ContainSubstring("Invalid provider file, keeping the previous version"))
	}
	lines = nil
	g.Expect(os.Remove(path)).To(Succeed())
	for range 3 {
		g.Expect(resolves()).To(Succeed())
	}
	g.Expect(lines).To(HaveLen(1))

	write("providers:\n" + entry("other"))
	g.Expect(resolves()).To(MatchError(credentials.ErrNoProvider))
}

func TestOptionsProvidersComeFirst(t *testing.T) {
	g := NewWithT(t)
	path := filepath.Join(t.TempDir(), "providers.json")
	g.Expect(os.WriteFile(path, []byte(goodFile), 0o600)).To(Succeed())
	resolver := newResolver(t, credentials.Options{ProviderFile: path, Providers: []providerfile.Provider{plain("secretreader")}})
	profile := profileOf("c1", clientcmdv1.Cluster{Server: "https://c1"})
	profile.Status.AccessProviders[0].Name = "secretreader"
	access := resolve(t, resolver, profile)
	g.Expect(access.PortableRESTConfig().ExecProvider.Command).To(Equal("/plugins/plain"))
}

func TestFlags(t *testing.T) {
	g := NewWithT(t)
	options := credentials.Options{PluginDirs: []string{"/default"}}
	flags := flag.NewFlagSet("", flag.ContinueOnError)
	options.AddFlags(flags)
	g.Expect(flags.Lookup("credential-plugin-dir").DefValue).To(Equal("[/default]"))
	g.Expect(flags.Parse([]string{
		"--clusterprofile-provider-file=/p.yaml", "--credential-plugin-dir=/a", "--credential-plugin-dir", "/b",
		"--credential-plugin-allow=x", "--credential-plugin-allow=/y@sha256:" + strings.Repeat("0a", 32),
	})).To(Succeed())
	g.Expect(options.AllowedCommands).To(Equal([]credentials.AllowedCommand{
		{Command: "x"}, {Command: "/y", SHA256: []string{strings.Repeat("0a", 32)}},
	}))
	g.Expect(flags.Lookup("credential-plugin-allow").Value.String()).To(Equal("[x /y@sha256:" + strings.Repeat("0a", 32) + "]"))
	for _, wrong := range []string{"", "..", "x@sha256:", "x@sha256:0a", "@sha256:" + strings.Repeat("0a", 32)} {
		g.Expect(flags.Lookup("credential-plugin-allow").Value.Set(wrong)).NotTo(Succeed(), wrong)
	}
	g.Expect(options.ProviderFile).To(Equal("/p.yaml"))
	g.Expect(options.PluginDirs).To(Equal([]string{"/a", "/b"}))
	g.Expect(flags.Lookup("credential-plugin-dir").Value.Set("")).NotTo(Succeed())
}
