// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package credentials_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	. "github.com/onsi/gomega"

	"github.com/rollcall-dev/rollcall/pkg/credentials"
	"github.com/rollcall-dev/rollcall/pkg/credentials/providerfile"
)

func TestAMissingPluginIsLoggedOnceWhenTheFileIsRead(t *testing.T) {
	g := NewWithT(t)
	var lines []string
	dir := t.TempDir()
	g.Expect(os.Symlink(executable(t), filepath.Join(dir, "there"))).To(Succeed())
	path := filepath.Join(dir, "providers.yaml")
	write := func(commands ...string) {
		content := "providers:\n"
		for _, command := range commands {
			content += "- name: of " + command + "\n  execConfig: {apiVersion: client.authentication.k8s.io/v1, command: " + command + "}\n"
		}
		g.Expect(os.WriteFile(path, []byte(content), 0o600)).To(Succeed())
	}
	write("there", "missing", "/a/path")
	resolver := newResolver(t, credentials.Options{
		ProviderFile: path,
		PluginDirs:   []string{dir},
		Logger:       funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{}),
	})
	logged := func() []string {
		for range 3 {
			_, _ = resolver.Resolve(t.Context(), newServer(t).profile("c1"))
		}
		old := lines
		lines = nil
		return old
	}
	g.Expect(logged()).To(ConsistOf(And(
		ContainSubstring(`"msg"="Credential plugin missing`),
		ContainSubstring(`"provider"="of missing"`),
		ContainSubstring(`\"missing\" is in none of `+dir),
	)))
	write("there")
	g.Expect(logged()).To(ConsistOf(ContainSubstring("Provider file changed")))
	write("there", "gone")
	g.Expect(logged()).To(ConsistOf(ContainSubstring("Provider file changed"), ContainSubstring(`"provider"="of gone"`)))
}

func TestAScriptWithoutAFirstLineSaysWhatIsMissing(t *testing.T) {
	g := NewWithT(t)
	script := filepath.Join(t.TempDir(), "script")
	g.Expect(os.WriteFile(script, []byte("echo hello\n"), 0o700)).To(Succeed())
	provider := newFakePlugin(t).provider()
	provider.ExecConfig.Command = script
	server := newServer(t)
	resolver := newResolver(t, credentials.Options{Providers: []providerfile.Provider{provider}})
	_, _, err := get(httpClient(t, resolve(t, resolver, server.profile("c1")).RESTConfig()), server.URL)
	g.Expect(err).To(MatchError(credentials.ErrPluginFailed))
	g.Expect(err).To(MatchError(HaveSuffix("plugin failed: exec format error (is a first line such as #!/bin/sh missing?): " + script)))
}

// upstreamFile has the form of the examples of cluster-inventory-api.
const upstreamFile = `{
  "providers": [
    {
      "name": "fake",
      "execConfig": {
        "apiVersion": "client.authentication.k8s.io/v1",
        "args": null,
        "command": "COMMAND",
        "env": null,
        "provideClusterInfo": true
      }
    }
  ]
}`

func TestUpstreamFile(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	bin := filepath.Join(dir, "bin")
	plugin := filepath.Join(bin, "secretreader-plugin")
	path := filepath.Join(dir, "provider-config.json")
	answer := execCredential("client.authentication.k8s.io/v1", map[string]string{"token": "t1"})
	for _, err := range []error{
		os.Mkdir(bin, 0o700),
		os.WriteFile(plugin, []byte("#!/bin/sh\necho '"+answer+"'\n"), 0o700),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct {
		name, command string
		dirs          []string
		allowed       []credentials.AllowedCommand
		text          string // of the error
	}{
		{"a path relative to the working directory", "./bin/secretreader-plugin", nil, nil, ""},
		{"a path without a dot", "bin/secretreader-plugin", nil, nil, ""},
		{"a path that is allowed", "./bin/secretreader-plugin", nil, []credentials.AllowedCommand{{Command: plugin}}, ""},
		{"a relative path that is allowed", "./bin/secretreader-plugin", nil, []credentials.AllowedCommand{{Command: "bin/secretreader-plugin"}}, ""},
		{"a name", "secretreader-plugin", []string{"bin"}, nil, ""},
		{"a name without a plugin folder", "secretreader-plugin", nil, nil,
			`providers[0] ("fake"): execConfig.command: "secretreader-plugin" is not a path, and there is no plugin folder to find it in: ` +
				`set --credential-plugin-dir (Options.PluginDirs), or use a path`},
		{"a path that is not allowed", "./bin/secretreader-plugin", nil, []credentials.AllowedCommand{{Command: "secretreader-plugin"}},
			"is not among the allowed commands"},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			replaced(t, path, strings.ReplaceAll(upstreamFile, "COMMAND", test.command))
			resolver, err := credentials.New(credentials.Options{ProviderFile: path, PluginDirs: test.dirs, AllowedCommands: test.allowed})
			if test.text != "" {
				g.Expect(err).To(MatchError(ContainSubstring(test.text)))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			defer resolver.Close()
			server := newServer(t, "Bearer t1")
			access := resolve(t, resolver, server.profile("c1"))
			getAll(t, httpClient(t, access.RESTConfig()), server.URL, 1, 200)
			g.Expect(access.PortableRESTConfig().ExecProvider.Command).To(Equal(plugin))
		})
	}
}
