// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/rollcall-dev/rollcall/pkg/credentials"
	"github.com/rollcall-dev/rollcall/pkg/credentials/providerfile"
	"github.com/rollcall-dev/rollcall/pkg/inventory"
	"github.com/rollcall-dev/rollcall/pkg/mc/fleet"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
	"github.com/rollcall-dev/rollcall/test/internal/inmemory"
)

// plugin is an exec plugin that runs a script, which a test can change.
type plugin struct {
	t        *testing.T
	script   string
	resolver *credentials.Resolver
}

func newPlugin(t *testing.T) *plugin {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the plugin is a shell script")
	}
	p := &plugin{t: t, script: filepath.Join(t.TempDir(), "script")}
	var err error
	p.resolver, err = credentials.New(credentials.Options{
		Timeout: time.Second,
		Providers: []providerfile.Provider{{Name: "plugin", ExecConfig: &clientcmdapi.ExecConfig{
			APIVersion: "client.authentication.k8s.io/v1", Command: "/bin/sh", Args: []string{p.script},
		}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.resolver.Close)
	return p
}

// runs sets the commands that the plugin runs.
func (p *plugin) runs(commands string) {
	p.t.Helper()
	next := p.script + ".next"
	if err := os.WriteFile(next, []byte(commands), 0o600); err != nil {
		p.t.Fatal(err)
	}
	if err := os.Rename(next, p.script); err != nil {
		p.t.Fatal(err)
	}
}

func (p *plugin) prints(token string) {
	p.runs(fmt.Sprintf(`echo '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":%q}}'`, token))
}

// Resolve implements credentials.Method.
func (p *plugin) Resolve(ctx context.Context, profile *inventory.Profile) (*credentials.Access, error) {
	return p.resolver.Resolve(ctx, profile)
}

// profileFor returns a profile that uses the plugin.
func (p *plugin) profileFor(c *mctest.Cluster) *inventory.Profile {
	profile := inmemory.Profile(c.Name(), c.Config().Host)
	profile.Status.AccessProviders[0].Name = "plugin"
	profile.Status.AccessProviders[0].Cluster.CertificateAuthorityData = c.Config().CAData
	return profile
}

// either resolves the profiles that name the plugin by the plugin, and others
// from memory.
type either struct {
	*inmemory.Inventory
	plugin *plugin
}

func (e *either) Resolve(ctx context.Context, profile *inventory.Profile) (*credentials.Access, error) {
	if profile.Status.AccessProviders[0].Name == "plugin" {
		return e.plugin.Resolve(ctx, profile)
	}
	return e.Inventory.Resolve(ctx, profile)
}

func newPluginEnv(t *testing.T, p *plugin) *env {
	return newEnv(t, func(o *fleet.Options) {
		o.Credentials = &either{o.Credentials.(*inmemory.Inventory), p}
		o.Connection.ConnectTimeout = mctest.Timeout
		o.Connection.Probe.Timeout = mctest.Timeout
	})
}

func TestPluginFailures(t *testing.T) {
	for _, tc := range []struct {
		name, script, err string
	}{
		{"it hangs", "sleep 600", "plugin timed out"},
		{"it fails", "echo what to do >&2; exit 3", "what to do"},
		{"it prints garbage", "echo hello", "not JSON"},
		{"it prints nothing", "", "nothing on standard output"},
		{"it prints an unknown token", `echo '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"x"}}'`, "401"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			f := mctest.NewFleet(t, 2)
			bad, good := f.Cluster(0), f.Cluster(1)
			p := newPlugin(t)
			p.runs(tc.script)
			e := newPluginEnv(t, p)
			e.Put(p.profileFor(bad))
			e.Add(good)
			e.awaitState(bad, fleet.Backoff, tc.err)
			e.checkReconciles(good)
			p.prints(bad.AdminToken())
			e.awaitReady(bad)
			e.checkReconciles(bad, good)
			e.checkUndisturbed(good)
			e.stopAndCheck(f.Clusters()...)
		})
	}
}

func TestRevokedTokenIsReplaced(t *testing.T) {
	g := NewWithT(t)
	f := mctest.NewFleet(t, 2)
	c, good := f.Cluster(0), f.Cluster(1)
	p := newPlugin(t)
	c.AddToken("first", "user")
	p.prints("first")
	e := newPluginEnv(t, p)
	e.Put(p.profileFor(c))
	e.Add(good)
	e.checkReconciles(c, good)

	c.AddToken("second", "user")
	p.prints("second")
	c.RevokeToken("first")
	cl, err := e.fleet.Get(t.Context(), nameOf(c))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(cl.GetAPIReader().List(t.Context(), &corev1.ConfigMapList{})).To(Succeed())
	c.CloseConnections()
	e.checkReconciles(c, good)
	e.checkUndisturbed(f.Clusters()...)
	e.stopAndCheck(f.Clusters()...)
}

func TestRevokedTokenDegradesCluster(t *testing.T) {
	f := mctest.NewFleet(t, 2)
	c, good := f.Cluster(0), f.Cluster(1)
	p := newPlugin(t)
	c.AddToken("first", "user")
	p.prints("first")
	e := newPluginEnv(t, p)
	e.Put(p.profileFor(c))
	e.Add(good)
	e.checkReconciles(c, good)

	p.runs("echo out of order >&2; exit 1")
	c.RevokeToken("first")
	e.awaitState(c, fleet.Degraded, "rejected the credentials")
	e.checkReconciles(good)
	c.AddToken("second", "user")
	p.prints("second")
	e.awaitReady(c)
	e.checkReconciles(c, good)
	e.checkUndisturbed(f.Clusters()...)
	e.stopAndCheck(f.Clusters()...)
}
