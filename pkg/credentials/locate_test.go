// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package credentials_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/go-logr/logr/funcr"
	. "github.com/onsi/gomega"

	"github.com/rollcall-dev/rollcall/pkg/credentials"
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
		ContainSubstring(`"msg"="Plugin of a provider is missing`),
		ContainSubstring(`"provider"="of missing"`),
		ContainSubstring(`\"missing\" is in none of `+dir),
	)))
	write("there")
	g.Expect(logged()).To(ConsistOf(ContainSubstring("is in force")))
	write("there", "gone")
	g.Expect(logged()).To(ConsistOf(ContainSubstring("is in force"), ContainSubstring(`"provider"="of gone"`)))
}

func TestAScriptWithoutAFirstLineSaysWhatIsMissing(t *testing.T) {
	g := NewWithT(t)
	script := filepath.Join(t.TempDir(), "script")
	g.Expect(os.WriteFile(script, []byte("echo hello\n"), 0o700)).To(Succeed())
	provider := newFakePlugin(t).provider()
	provider.ExecConfig.Command = script
	server := newServer(t)
	resolver := newResolver(t, credentials.Options{Providers: []credentials.Provider{provider}})
	_, _, err := get(httpClient(t, resolve(t, resolver, server.profile("c1")).RESTConfig()), server.URL)
	g.Expect(err).To(MatchError(credentials.ErrPluginFailed))
	g.Expect(err).To(MatchError(HaveSuffix("plugin failed: exec format error (is a first line such as #!/bin/sh missing?): " + script)))
}
