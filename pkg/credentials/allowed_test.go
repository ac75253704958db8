// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package credentials_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"

	"github.com/rollcall-dev/rollcall/pkg/credentials"
	"github.com/rollcall-dev/rollcall/pkg/credentials/providerfile"
)

func digestOf(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

func TestAllowedCommands(t *testing.T) {
	for _, test := range []struct {
		name             string
		allowed, command string
		ok               bool
	}{
		{"a path", "/plugins/x", "/plugins/x", true},
		{"a path that is spelled otherwise", "/plugins/x", "/plugins/./y/../x", true},
		{"another path", "/plugins/x", "/bin/sh", false},
		{"a path that goes on", "/plugins/x", "/plugins/x/y", false},
		{"a name", "x", "x", true},
		{"another name", "x", "y", false},
		{"a path that ends with the name", "x", "/tmp/x", false},
		{"the name alone", "/plugins/x", "x", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			provider := plain("fake")
			provider.ExecConfig.Command = test.command
			resolver, err := credentials.New(credentials.Options{
				Providers:       []providerfile.Provider{provider},
				PluginDirs:      []string{"/plugins"},
				AllowedCommands: []credentials.AllowedCommand{{Command: test.allowed}},
			})
			if test.ok {
				g.Expect(err).NotTo(HaveOccurred())
				resolver.Close()
				return
			}
			g.Expect(err).To(MatchError(credentials.ErrDenied))
			g.Expect(err).To(MatchError(ContainSubstring(
				`Options: providers[0] ("fake"): execConfig.command: denied: %q is not among the allowed commands`, test.command)))
		})
	}
}

func TestFileWithDisallowedCommand(t *testing.T) {
	g := NewWithT(t)
	path := filepath.Join(t.TempDir(), "providers.yaml")
	replaced(t, path, fileOf())
	resolver := newResolver(t, credentials.Options{ProviderFile: path, AllowedCommands: []credentials.AllowedCommand{{Command: "/x"}}})
	replaced(t, path, strings.ReplaceAll(fileOf(), "/x", "/bin/sh"))
	settle(t, resolver)
	access := resolve(t, resolver, profileOf("c1", clientcmdv1.Cluster{Server: "https://c1"}))
	g.Expect(access.PortableRESTConfig().ExecProvider.Command).To(Equal("/x"))
}

func TestDigests(t *testing.T) {
	plugin := executable(t)
	right := digestOf(t, plugin)
	wrong := strings.Repeat("0", 64)
	for _, test := range []struct {
		name    string
		allowed []credentials.AllowedCommand
		ok      bool
	}{
		{"the right one", []credentials.AllowedCommand{{Command: plugin, SHA256: []string{right}}}, true},
		{"in upper case", []credentials.AllowedCommand{{Command: plugin, SHA256: []string{strings.ToUpper(right)}}}, true},
		{"one of several", []credentials.AllowedCommand{{Command: plugin, SHA256: []string{wrong, right}}}, true},
		{"one of several entries", []credentials.AllowedCommand{{Command: plugin, SHA256: []string{wrong}}, {Command: plugin, SHA256: []string{right}}}, true},
		{"none", []credentials.AllowedCommand{{Command: plugin}}, true},
		{"a wrong one", []credentials.AllowedCommand{{Command: plugin, SHA256: []string{wrong}}}, false},
		{"that of another command", []credentials.AllowedCommand{{Command: plugin, SHA256: []string{wrong}}, {Command: "/y", SHA256: []string{right}}}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			plugin, server := newFakePlugin(t), newServer(t, "Bearer t1")
			plugin.output("t1", future())
			resolver := newResolver(t, credentials.Options{Providers: []providerfile.Provider{plugin.provider()}, AllowedCommands: test.allowed})
			_, _, err := get(httpClient(t, resolve(t, resolver, server.profile("c1")).RESTConfig()), server.URL)
			if test.ok {
				g.Expect(err).NotTo(HaveOccurred())
				return
			}
			g.Expect(err).To(MatchError(credentials.ErrDenied))
			g.Expect(err).To(MatchError(ContainSubstring("its SHA-256 digest " + right + " is not among those allowed")))
			g.Expect(plugin.runs()).To(BeEmpty())
		})
	}
}

func TestDigestIsCheckedBeforeEachRun(t *testing.T) {
	g := NewWithT(t)
	server := newServer(t, "Bearer t1", "Bearer t2")
	dir := t.TempDir()
	script := filepath.Join(dir, "script")
	write := func(token string) {
		content := fmt.Sprintf("#!/bin/sh\necho '%s'\n", execCredential("client.authentication.k8s.io/v1", map[string]string{"token": token}))
		g.Expect(os.WriteFile(script+"~", []byte(content), 0o700)).To(Succeed())
		g.Expect(os.Rename(script+"~", script)).To(Succeed())
	}
	write("t1")
	provider := plain("fake")
	provider.ExecConfig.Command, provider.ExecConfig.Env = "script", nil
	resolver := newResolver(t, credentials.Options{
		Providers:       []providerfile.Provider{provider},
		PluginDirs:      []string{dir},
		AllowedCommands: []credentials.AllowedCommand{{Command: "script", SHA256: []string{digestOf(t, script)}}},
	})
	access := resolve(t, resolver, server.profile("c1"))
	client := httpClient(t, access.RESTConfig())
	getAll(t, client, server.URL, 1, 200)

	write("t2")
	server.accept("Bearer t2")
	getAll(t, client, server.URL, 1, 401)
	g.Expect(server.identities()).NotTo(ContainElement("Bearer t2"), "what has another content is not run")
}

func TestPluginEnvironment(t *testing.T) {
	t.Setenv("ROLLCALL_TEST_ONE", "1")
	t.Setenv("ROLLCALL_TEST_TWO", "2")
	t.Setenv("HTTPS_PROXY", "http://127.0.0.1:1")
	for _, test := range []struct {
		name      string
		inherited []string
		want      []string
	}{
		{"inherited by default", nil, []string{"HTTPS_PROXY", "ROLLCALL_TEST_ONE", "ROLLCALL_TEST_TWO"}},
		{"an empty list", []string{}, nil},
		{"a name", []string{"ROLLCALL_TEST_ONE"}, []string{"ROLLCALL_TEST_ONE"}},
		{"a pattern", []string{"ROLLCALL_*_T*"}, []string{"ROLLCALL_TEST_TWO"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			plugin, server := newFakePlugin(t), newServer(t, "Bearer t1")
			plugin.output("t1", future())
			provider := plugin.provider()
			provider.Rollcall.InheritedEnvVars = test.inherited
			resolver := newResolver(t, credentials.Options{Providers: []providerfile.Provider{provider}})
			getAll(t, httpClient(t, resolve(t, resolver, server.profile("c1")).RESTConfig()), server.URL, 1, 200)
			var got []string
			for _, name := range []string{"HTTPS_PROXY", "ROLLCALL_TEST_ONE", "ROLLCALL_TEST_TWO"} {
				if _, found := plugin.runs()[0].env(name); found {
					got = append(got, name)
				}
			}
			g.Expect(got).To(Equal(test.want))
			if test.inherited != nil {
				g.Expect(plugin.runs()[0].Env).To(HaveLen(len(test.want)+3), "the two of the file, and the request")
			}
		})
	}
}

func TestAllowedProfileEnvVars(t *testing.T) {
	for _, test := range []struct {
		name, variables string
		allowed         []string
		text            string
	}{
		{"all harmless ones by default", `{"REGION":"eu"}`, nil, ""},
		{"one that is listed", `{"REGION":"eu"}`, []string{"REGION"}, ""},
		{"one that matches", `{"REGION_A":"eu"}`, []string{"TENANT", "REGION_*"}, ""},
		{"one that is not listed", `{"REGION":"eu","TENANT":"x"}`, []string{"REGION"}, "denied: variable TENANT is not among the provider's allowedProfileEnvVars"},
		{"a dangerous one that is listed", `{"LD_PRELOAD":"/x"}`, []string{"*", "LD_PRELOAD"}, "denied: variable LD_PRELOAD is not accepted from a profile"},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			provider := plain("fake")
			provider.ProfileSourcedEnvVarsPolicy = providerfile.ProfileSourcedEnvVarsReplace
			provider.Rollcall.AllowedProfileEnvVars = test.allowed
			resolver := newResolver(t, credentials.Options{Providers: []providerfile.Provider{provider}})
			_, err := resolver.Resolve(t.Context(), profileOf("c1", clientcmdv1.Cluster{
				Server:     "https://c1",
				Extensions: []clientcmdv1.NamedExtension{extension(envsExtension, test.variables)},
			}))
			if test.text == "" {
				g.Expect(err).NotTo(HaveOccurred())
				return
			}
			g.Expect(err).To(MatchError(credentials.ErrDenied))
			g.Expect(err).To(MatchError(ContainSubstring(test.text)))
		})
	}
}
