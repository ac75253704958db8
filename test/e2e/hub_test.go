// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/rollcall-dev/rollcall/internal/realfleet"
	"github.com/rollcall-dev/rollcall/pkg/credentials"
	"github.com/rollcall-dev/rollcall/pkg/credentials/providerfile"
	mcmanager "github.com/rollcall-dev/rollcall/pkg/mc/manager"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
	clusterinventoryapi "github.com/rollcall-dev/rollcall/providers/cluster-inventory-api"
)

// hubEnv is a manager with a controller of ConfigMaps over the members of a real
// hub.
type hubEnv struct {
	*controlPlanes
	t        *testing.T
	network  *realfleet.Forwarder // between the manager and the hub
	mgr      mcmanager.Manager
	provider *clusterinventoryapi.Provider
	recorder *recorder
}

// newHubEnv returns an env that has not been started. When the test ends, it
// looks for tokens in the logs.
func newHubEnv(t *testing.T, change ...func(*clusterinventoryapi.Options)) *hubEnv {
	t.Helper()
	g := NewWithT(t)
	e := &hubEnv{controlPlanes: realPlanes(t), t: t, recorder: newRecorder()}
	resolver, err := e.newResolver()
	g.Expect(err).NotTo(HaveOccurred())
	options := clusterinventoryapi.Options{Credentials: resolver}
	for _, c := range change {
		c(&options)
	}
	e.provider, err = clusterinventoryapi.New(options)
	g.Expect(err).NotTo(HaveOccurred())
	hubToken, err := e.hub.IssueToken(t.Context(), e.hub.ControllerAccount, nil)
	g.Expect(err).NotTo(HaveOccurred())
	e.network, err = e.hub.NewNetwork()
	g.Expect(err).NotTo(HaveOccurred())
	config := rest.AnonymousClientConfig(e.hub.Config)
	config.Host, config.BearerToken = "https://"+e.network.Addr(), hubToken
	e.mgr, err = mcmanager.New(config, e.provider, mctest.ManagerOptions())
	g.Expect(err).NotTo(HaveOccurred())
	e.recorder.watchConfigMaps(t, e.mgr)
	t.Cleanup(func() {
		resolver.Close()
		e.network.Close()
		for _, token := range []string{hubToken, e.east.Token, e.west.Token} {
			checkNotLogged(t, token)
		}
	})
	return e
}

// newResolver returns a resolver that runs the plugin.
func (p *controlPlanes) newResolver() (*credentials.Resolver, error) {
	return credentials.New(credentials.Options{
		PluginDirs: []string{p.dir},
		Providers: []providerfile.Provider{{
			Name: realfleet.AccessProvider,
			ExecConfig: &clientcmdapi.ExecConfig{
				APIVersion:         "client.authentication.k8s.io/v1",
				Command:            "mc-credential-token-secret",
				Args:               []string{"--kubeconfig=" + p.pluginConfig, "--namespace=" + realfleet.TokenNamespace},
				ProvideClusterInfo: true,
			},
		}},
	})
}

// start runs the manager until the test ends.
func (e *hubEnv) start() { mctest.StartManager(e.t, e.mgr) }

// checkNotLogged checks that no part of a token has been logged. Its header is
// no secret.
func checkNotLogged(t *testing.T, token string) {
	t.Helper()
	for _, part := range append(strings.Split(token, "."), token) {
		isHeader := strings.HasPrefix(part, "eyJhbGciOi") && part != token // {"alg":
		if len(part) > 40 && !isHeader && logs.contain(part) {
			t.Error("a token, or a part of one, has been logged")
		}
	}
}

func memberName(m *realfleet.Member) multicluster.ClusterName {
	return multicluster.ClusterName(m.Namespace + "/" + m.Name)
}

// add adds a member to the hub until the test ends.
func (e *hubEnv) add(m *realfleet.Member) {
	e.t.Helper()
	if err := e.hub.AddMember(e.t.Context(), m); err != nil {
		e.t.Fatal(err)
	}
	e.t.Cleanup(func() {
		if err := e.hub.RemoveMember(context.Background(), m); err != nil {
			e.t.Error(err)
		}
	})
}

// remove deletes the member's profile.
func (e *hubEnv) remove(m *realfleet.Member) {
	e.t.Helper()
	if err := e.hub.DeleteProfile(e.t.Context(), m); err != nil {
		e.t.Fatal(err)
	}
}

// create creates a ConfigMap until the test ends.
func (e *hubEnv) create(m *realfleet.Member, name string) {
	e.t.Helper()
	if err := m.CreateConfigMap(e.t.Context(), name); err != nil {
		e.t.Fatal(err)
	}
	e.t.Cleanup(func() {
		if err := m.DeleteConfigMap(context.Background(), name); err != nil {
			e.t.Error(err)
		}
	})
}

func (e *hubEnv) reconciled(m *realfleet.Member, configMap string) func() bool {
	return func() bool { return e.recorder.reconciled(memberName(m), configMap) }
}

func (e *hubEnv) engagements(m *realfleet.Member) int { return e.recorder.engagements(memberName(m)) }

func (e *hubEnv) get(m *realfleet.Member) func() error {
	return func() error {
		_, err := e.mgr.GetCluster(context.Background(), memberName(m))
		return err
	}
}

func TestHubProfiles(t *testing.T) {
	g := NewWithT(t)
	e := newHubEnv(t)
	e.add(e.east)
	e.start()
	e.create(e.east, "one")
	g.Eventually(e.reconciled(e.east, "one")).Should(BeTrue())

	e.add(e.west)
	e.create(e.west, "one")
	g.Eventually(e.reconciled(e.west, "one")).Should(BeTrue(), "a profile is added")

	e.remove(e.east)
	g.Eventually(e.get(e.east)).Should(MatchError(multicluster.ErrClusterNotFound))
	e.create(e.east, "two")
	e.create(e.west, "two")
	g.Eventually(e.reconciled(e.west, "two")).Should(BeTrue(), "the other member is still reconciled")
	g.Expect(e.reconciled(e.east, "two")()).To(BeFalse(), "its profile is deleted")
	g.Expect(e.engagements(e.west)).To(Equal(1))
}

func TestTokenRotation(t *testing.T) {
	g := NewWithT(t)
	e := newHubEnv(t)
	east := e.east
	e.add(east)
	e.start()
	e.create(east, "before")
	g.Eventually(e.reconciled(east, "before")).Should(BeTrue())

	status := e.provider.Status()
	g.Expect(status).To(HaveLen(1))
	g.Expect(status[0].CredentialExpiry).To(BeTemporally(">", time.Now()))
	g.Expect(status[0].OpenWatches).To(Equal(1))
	g.Expect(status[0].UID).To(BeEmpty(), "its token may read only ConfigMaps")

	old, anchor := east.Token, east.BoundSecret
	g.Expect(east.ReplaceToken(t.Context())).To(Succeed())
	g.Expect(e.hub.PutToken(t.Context(), east)).To(Succeed())
	g.Expect(east.Client.Delete(t.Context(), anchor)).To(Succeed())
	g.Eventually(func() (int, error) { return east.Status(t.Context(), old) }).Should(Equal(http.StatusUnauthorized), "the old token is revoked")
	east.Network.Cut() // an open watch outlives its token

	e.create(east, "after")
	g.Eventually(e.reconciled(east, "after")).Should(BeTrue())
	cl, err := e.mgr.GetCluster(t.Context(), memberName(east))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(cl.GetAPIReader().List(t.Context(), &corev1.ConfigMapList{})).To(Succeed())
	g.Expect(e.engagements(east)).To(Equal(1))
	checkNotLogged(t, old)
}

func TestHeartbeats(t *testing.T) {
	g := NewWithT(t)
	e := newHubEnv(t)
	e.add(e.east)
	e.add(e.west)
	e.start()
	for _, m := range []*realfleet.Member{e.east, e.west} {
		g.Eventually(e.get(m)).Should(Succeed())
	}
	for range 10 {
		g.Expect(e.hub.Heartbeat(t.Context(), e.east)).To(Succeed())
	}
	// The hub's watch delivers this after the heartbeats.
	e.remove(e.west)
	g.Eventually(e.get(e.west)).Should(MatchError(multicluster.ErrClusterNotFound))
	e.create(e.east, "after")
	g.Eventually(e.reconciled(e.east, "after")).Should(BeTrue())
	g.Expect(e.engagements(e.east)).To(Equal(1))
}

func TestMemberDownAtStart(t *testing.T) {
	g := NewWithT(t)
	e := newHubEnv(t)
	e.add(e.east)
	e.add(e.west)
	e.create(e.east, "one")
	e.create(e.west, "one")
	g.Expect(e.west.StopAPIServer()).To(Succeed())
	up := false
	t.Cleanup(func() {
		if !up {
			g.Expect(e.west.StartAPIServer()).To(Succeed())
		}
	})

	e.start()
	g.Eventually(e.mgr.Elected()).Should(BeClosed(), "the manager starts")
	g.Eventually(e.reconciled(e.east, "one")).Should(BeTrue(), "the other member is reconciled")
	g.Expect(e.get(e.west)()).To(MatchError(multicluster.ErrClusterNotReady))

	g.Expect(e.west.StartAPIServer()).To(Succeed())
	up = true
	g.Eventually(e.reconciled(e.west, "one")).Should(BeTrue())
	g.Expect(e.engagements(e.east)).To(Equal(1))
}
