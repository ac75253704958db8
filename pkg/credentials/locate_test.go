// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package credentials_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	. "github.com/onsi/gomega"

	"github.com/rollcall-dev/rollcall/pkg/credentials"
	"github.com/rollcall-dev/rollcall/pkg/credentials/providerfile"
)

func TestLocatePlugin(t *testing.T) {
	first, second := t.TempDir(), t.TempDir()
	link := func(dir, name string) {
		if err := os.Symlink(executable(t), filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	link(first, "both")
	link(second, "both")
	link(second, "second")
	for _, text := range []string{filepath.Join(first, "text"), filepath.Join(second, "later")} {
		if err := os.WriteFile(text, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(first, "folder"), 0o700); err != nil {
		t.Fatal(err)
	}
	onPath := t.TempDir()
	link(onPath, "on-path")
	t.Setenv("PATH", onPath)
	t.Chdir(onPath)

	for _, test := range []struct {
		name, command, path, text string
	}{
		{"the first folder wins", "both", first + "/both", ""},
		{"the second is looked in too", "second", second + "/second", ""},
		{"neither PATH nor the working directory is", "on-path", first + "/on-path", `"on-path" is in none of ` + first + ", " + second},
		{"a file without the permission does not do", "text", first + "/text", first + "/text: not executable"},
		{"nor does one in the second folder", "later", second + "/later", second + "/later: not executable"},
		{"a folder does not do", "folder", first + "/folder", first + "/folder: not a file"},
		{"an absolute path is looked for nowhere else", first + "/second", first + "/second", first + "/second: no such file or directory"},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			plugin, server := newFakePlugin(t), newServer(t, "Bearer t1")
			plugin.output("t1", future())
			provider := plugin.provider()
			provider.ExecConfig.Command = test.command
			provider.ExecConfig.InstallHint = "ask the platform team"
			resolver := newResolver(t, credentials.Options{
				Providers:  []providerfile.Provider{provider},
				PluginDirs: []string{first, second},
			})
			access := resolve(t, resolver, server.profile("c1"))
			g.Expect(access.PortableRESTConfig().ExecProvider.Command).To(Equal(test.path))
			_, _, err := get(httpClient(t, access.RESTConfig()), server.URL)
			if test.text == "" {
				g.Expect(err).NotTo(HaveOccurred())
				return
			}
			g.Expect(err).To(MatchError(credentials.ErrPluginMissing))
			g.Expect(err).To(MatchError(HaveSuffix("plugin missing: %s: ask the platform team", test.text)))
			var failed *credentials.RunError
			g.Expect(errors.As(err, &failed)).To(BeTrue())
			g.Expect(failed.InstallHint).To(Equal("ask the platform team"))
		})
	}
}

func TestMissingPluginIsLogged(t *testing.T) {
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
		settle(t, resolver)
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

func TestScriptWithoutInterpreter(t *testing.T) {
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
	output := execCredential("client.authentication.k8s.io/v1", map[string]string{"token": "t1"})
	for _, err := range []error{
		os.Mkdir(bin, 0o700),
		os.WriteFile(plugin, []byte("#!/bin/sh\necho '"+output+"'\n"), 0o700),
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
		{"a path relative to the working directory", "./bin/secretreader-plugin", []string{"bin"}, nil, ""},
		{"a path without a dot", "bin/secretreader-plugin", []string{"/plugins", bin}, nil, ""},
		{"a path into a folder below", "./bin/secretreader-plugin", []string{"."}, nil, ""},
		{"a path that is allowed", "./bin/secretreader-plugin", []string{"bin"}, []credentials.AllowedCommand{{Command: plugin}}, ""},
		{"a relative path that is allowed", "./bin/secretreader-plugin", []string{"bin"}, []credentials.AllowedCommand{{Command: "bin/secretreader-plugin"}}, ""},
		{"a name", "secretreader-plugin", []string{"bin"}, nil, ""},
		{"an absolute path", plugin, nil, nil, ""},
		{"a path without a plugin folder", "./bin/secretreader-plugin", nil, nil,
			`providers[0] ("fake"): execConfig.command: "./bin/secretreader-plugin" is a relative path that leads into no plugin folder: ` +
				`set --credential-plugin-dir=bin (Options.PluginDirs), or use an absolute path`},
		{"a path into another folder", "./bin/secretreader-plugin", []string{"bin/plugins"}, nil, "leads into no plugin folder"},
		{"a path that leaves the plugin folder", "./bin/../bin2/secretreader-plugin", []string{"bin"}, nil, "leads into no plugin folder"},
		{"a name without a plugin folder", "secretreader-plugin", nil, nil,
			`providers[0] ("fake"): execConfig.command: "secretreader-plugin" is not a path, and there is no plugin folder to find it in: ` +
				`set --credential-plugin-dir (Options.PluginDirs), or use an absolute path`},
		{"a path that is not allowed", "./bin/secretreader-plugin", []string{"bin"}, []credentials.AllowedCommand{{Command: "secretreader-plugin"}},
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
