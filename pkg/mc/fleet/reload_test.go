// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/rollcall-dev/rollcall/pkg/credentials"
	"github.com/rollcall-dev/rollcall/pkg/credentials/plugin"
	"github.com/rollcall-dev/rollcall/pkg/mc/fleet"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
)

// tokenPlugin is a credential plugin that prints always the same token.
type tokenPlugin string

func (tokenPlugin) Name() string    { return "token" }
func (tokenPlugin) Version() string { return "v1" }
func (p tokenPlugin) Credential(context.Context, plugin.Request) (*plugin.Credential, error) {
	return &plugin.Credential{Token: string(p)}, nil
}

// TestDenyingFileDisengages has rules added to the provider file of a cluster in
// use.
func TestDenyingFileDisengages(t *testing.T) {
	for _, test := range []struct{ rule, text string }{
		{"allowedServers: [elsewhere.example.com]", "is not among the provider's allowedServers"},
		{"allowedProfileNamespaces: [other]", `the profile's namespace "fleet" is not among the provider's allowedProfileNamespaces`},
	} {
		t.Run(test.rule, func(t *testing.T) {
			g := NewWithT(t)
			member := mctest.New(t)
			path := filepath.Join(t.TempDir(), "providers.yaml")
			write := func(rule string) {
				content := "providers:\n- name: test\n  rollcall:\n    inProcess: token\n    " + rule + "\n"
				g.Expect(os.WriteFile(path, []byte(content), 0o600)).To(Succeed())
			}
			write("")
			resolver, err := credentials.New(credentials.Options{
				ProviderFile: path,
				Plugins:      []func() plugin.Plugin{func() plugin.Plugin { return tokenPlugin(member.AdminToken()) }},
			})
			g.Expect(err).NotTo(HaveOccurred())
			t.Cleanup(resolver.Close)
			env := start(t, nil, func(o *fleet.Options) { o.Credentials = resolver })
			p := profile("c1", member.Config().Host)
			p.Status.AccessProviders[0].Cluster.CertificateAuthorityData = member.Config().CAData
			env.source.put(p)
			g.Eventually(env.state("fleet/c1")).Should(Equal(fleet.Ready))

			write(test.rule)
			g.Eventually(env.state("fleet/c1")).Should(Equal(fleet.Backoff))
			status := env.status("fleet/c1")
			g.Expect(status.Reason).To(Equal(fleet.ResolveFailed))
			g.Expect(status.LastError).To(And(ContainSubstring(`provider "test": denied`), ContainSubstring(test.text)))
			g.Eventually(env.aware.of("fleet/c1")[0].ctx.Done()).Should(BeClosed())

			write("")
			g.Eventually(env.state("fleet/c1")).Should(Equal(fleet.Ready))
			g.Expect(env.aware.of("fleet/c1")).To(HaveLen(2))
		})
	}
}
