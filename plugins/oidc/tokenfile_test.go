// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package oidc_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/rollcall-dev/rollcall/pkg/credentials/plugin"
)

func TestTokenFile(t *testing.T) {
	const rule = "--allowed-audience=*=*"
	later := time.Now().Add(time.Hour).Truncate(time.Second)
	c1 := issue([]string{"c1"}, later)
	for _, test := range []struct {
		name  string
		token string
		args  []string
		code  int
		text  string // of the expected error
	}{
		{name: "a token with the audience", token: c1 + "\n"},
		{name: "an audience that is a text", token: jwt(`{"aud":"c1","exp":4102444800}`)},
		{name: "a token with another audience", token: issue([]string{"c2"}, later), code: plugin.ExitFailed, text: `the token is for audience "c2", it must be for audience "c1" only`},
		{name: "a token with two audiences", token: issue([]string{"c1", "c2"}, later), code: plugin.ExitFailed, text: `the token is for audiences ["c1" "c2"], it must be for audience "c1" only`},
		{name: "a token without an audience", token: jwt(`{"exp":4102444800}`), code: plugin.ExitFailed, text: "the token is for no audience"},
		{name: "an expired token", token: issue([]string{"c1"}, time.Unix(1e9, 0)), code: plugin.ExitFailed, text: "the token expired at 2001-09-09T01:46:40Z: see the volume's serviceAccountToken"},
		{name: "a token without an expiry", token: jwt(`{"aud":["c1"]}`), code: plugin.ExitFailed, text: "the token has no expiry"},
		{name: "another file", token: "secret-1", code: plugin.ExitFailed, text: "the token is not a JSON Web Token"},
		{name: "an empty file", token: "\n", code: plugin.ExitFailed, text: "the file is empty"},
		{name: "an audience of the hub", token: c1, args: []string{"--hub-audience=c1"}, code: plugin.ExitFailed, text: `audience "c1" is one of the hub's own API server`},
		{name: "flags of the other mode", token: c1, args: []string{"--service-account=a/b"}, code: plugin.ExitUsage, text: "--token-file must not be combined with"},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			path := filepath.Join(t.TempDir(), "token")
			g.Expect(os.WriteFile(path, []byte(test.token), 0o600)).To(Succeed())
			code, stdout, stderr := run(t, plugin.Cluster{Server: memberURL}, "c1", append(test.args, rule, "--token-file="+path)...)
			g.Expect(code).To(Equal(test.code))
			if test.text == "" {
				g.Expect(stderr).To(BeEmpty())
				g.Expect(printed(t, stdout).Token).To(Equal(strings.TrimSpace(test.token)))
				return
			}
			g.Expect(stdout).To(BeEmpty())
			g.Expect(stderr).To(ContainSubstring(test.text))
			g.Expect(strings.Count(stderr, "\n")).To(Equal(1), "one line")
			g.Expect(stderr).NotTo(ContainSubstring("secret-" + "1"))
		})
	}
}

func TestTokenFileIsReadEachTime(t *testing.T) {
	g := NewWithT(t)
	path := filepath.Join(t.TempDir(), "token")
	args := []string{"--allowed-audience=c1=" + memberURL, "--token-file=" + path}
	for _, lifetime := range []time.Duration{time.Hour, 2 * time.Hour} {
		expiry := time.Now().Add(lifetime).Truncate(time.Second)
		g.Expect(os.WriteFile(path, []byte(issue([]string{"c1"}, expiry)), 0o600)).To(Succeed())
		_, stdout, stderr := run(t, plugin.Cluster{Server: memberURL}, "c1", args...)
		g.Expect(stderr).To(BeEmpty())
		g.Expect(printed(t, stdout).ExpirationTimestamp).To(BeTemporally("==", expiry))
	}
	code, _, stderr := run(t, plugin.Cluster{Server: "https://evil"}, "c1", args...)
	g.Expect(code).To(Equal(plugin.ExitFailed))
	g.Expect(stderr).To(ContainSubstring("is not allowed for server https://evil"))

	code, _, stderr = run(t, plugin.Cluster{Server: memberURL}, "c1", "--allowed-audience=c1="+memberURL, "--token-file="+filepath.Dir(path))
	g.Expect(code).To(Equal(plugin.ExitFailed))
	g.Expect(stderr).To(ContainSubstring("not a regular file"))
	g.Expect(os.Remove(path)).To(Succeed())
	code, _, stderr = run(t, plugin.Cluster{Server: memberURL}, "c1", args...)
	g.Expect(code).To(Equal(plugin.ExitFailed))
	g.Expect(stderr).To(ContainSubstring("no such file"))
}
