// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package fleet_test

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
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
)

// plugin is an exec plugin whose doing a test changes.
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

// does makes the plugin run other commands from now on.
func (p *plugin) does(commands string) {
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
	p.does(fmt.Sprintf(`echo '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":%q}}'`, token))
}

// Resolve implements credentials.Method for profiles that are the plugin's.
func (p *plugin) Resolve(ctx context.Context, profile *inventory.Profile) (*credentials.Access, error) {
	return p.resolver.Resolve(ctx, profile)
}

// profileFor returns the profile of a cluster whose credentials the plugin has.
func (p *plugin) profileFor(c *mctest.Cluster) *inventory.Profile {
	profile := profileTo(c.Name(), c.Config().Host)
	profile.Status.AccessProviders[0].Name = "plugin"
	profile.Status.AccessProviders[0].Cluster.CertificateAuthorityData = c.Config().CAData
	return profile
}

// either resolves by the plugin the profiles that name it.
type either struct {
	*roll
	plugin *plugin
}

func (e *either) Resolve(ctx context.Context, profile *inventory.Profile) (*credentials.Access, error) {
	if profile.Status.AccessProviders[0].Name == "plugin" {
		return e.plugin.Resolve(ctx, profile)
	}
	return e.roll.Resolve(ctx, profile)
}

func newPluginStage(t *testing.T, p *plugin) *stage {
	return newStage(t, func(o *fleet.Options) {
		o.Credentials = &either{o.Credentials.(*roll), p}
		o.ConnectTimeout = patience
		o.Probe.Timeout = patience
	})
}

func TestAPluginThatDoesNotWorkIsWaitedFor(t *testing.T) {
	for _, tc := range []struct {
		name, does, err string
	}{
		{"it hangs", "sleep 600", "plugin timed out"},
		{"it fails", "echo what to do >&2; exit 3", "what to do"},
		{"it prints garbage", "echo hello", "not JSON"},
		{"it prints nothing", "", "nothing on standard output"},
		{"it prints a token that the cluster does not know", `echo '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"x"}}'`, "401"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			f := mctest.NewFleet(t, 2)
			bad, good := f.Cluster(0), f.Cluster(1)
			p := newPlugin(t)
			p.does(tc.does)
			s := newPluginStage(t, p)
			s.put(p.profileFor(bad))
			s.join(good)
			s.awaitState(bad, fleet.Backoff, tc.err)
			s.beat(good)
			p.prints(bad.AdminToken())
			s.awaitReady(bad)
			s.beat(bad, good)
			s.goodUntouched([]*mctest.Cluster{good})
			s.nothingIsLeft(f.Clusters()...)
		})
	}
}

func TestATokenThatIsRevokedIsReplacedWithoutAnyoneNoticing(t *testing.T) {
	g := NewWithT(t)
	f := mctest.NewFleet(t, 2)
	c, good := f.Cluster(0), f.Cluster(1)
	p := newPlugin(t)
	c.AddToken("first", "somebody")
	p.prints("first")
	s := newPluginStage(t, p)
	s.put(p.profileFor(c))
	s.join(good)
	s.beat(c, good)

	c.AddToken("second", "somebody")
	p.prints("second")
	c.RevokeToken("first")
	cl, err := s.Get(t.Context(), multicluster.ClusterName(c.Name()))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(cl.GetAPIReader().List(t.Context(), &corev1.ConfigMapList{})).To(Succeed())
	c.CloseConnections()
	s.beat(c, good)
	s.goodUntouched(f.Clusters())
	s.nothingIsLeft(f.Clusters()...)
}

func TestATokenThatIsRevokedAndCannotBeReplacedDegradesTheCluster(t *testing.T) {
	f := mctest.NewFleet(t, 2)
	c, good := f.Cluster(0), f.Cluster(1)
	p := newPlugin(t)
	c.AddToken("first", "somebody")
	p.prints("first")
	s := newPluginStage(t, p)
	s.put(p.profileFor(c))
	s.join(good)
	s.beat(c, good)

	p.does("echo out of order >&2; exit 1")
	c.RevokeToken("first")
	s.awaitState(c, fleet.Degraded, "does not accept the credentials")
	s.beat(good)
	c.AddToken("second", "somebody")
	p.prints("second")
	s.awaitReady(c)
	s.beat(c, good)
	s.goodUntouched(f.Clusters())
	s.nothingIsLeft(f.Clusters()...)
}
