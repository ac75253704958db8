// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package clusterinventory

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/rollcall-dev/rollcall/internal/realfleet"
	"github.com/rollcall-dev/rollcall/pkg/credentials"
	"github.com/rollcall-dev/rollcall/pkg/credentials/providerfile"
	mcbuilder "github.com/rollcall-dev/rollcall/pkg/mc/builder"
	mccontroller "github.com/rollcall-dev/rollcall/pkg/mc/controller"
	mcmanager "github.com/rollcall-dev/rollcall/pkg/mc/manager"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
	mcreconcile "github.com/rollcall-dev/rollcall/pkg/mc/reconcile"
	clusterinventoryapi "github.com/rollcall-dev/rollcall/providers/cluster-inventory-api"
)

const patience = time.Minute

func TestClustersAreReconciledWhileTheirProfilesAreThere(t *testing.T) {
	g := NewWithT(t)
	enlist(t, east)
	f := start(t)
	createConfigMap(t, east, "one")
	g.Eventually(f.reconciled(east, "one")).WithTimeout(patience).Should(BeTrue())

	enlist(t, west)
	createConfigMap(t, west, "one")
	g.Eventually(f.reconciled(west, "one")).WithTimeout(patience).Should(BeTrue(), "a profile that is added")

	g.Expect(hub.Strike(t.Context(), east)).To(Succeed())
	g.Eventually(f.get(east)).WithTimeout(patience).Should(MatchError(multicluster.ErrClusterNotFound))
	createConfigMap(t, east, "two")
	createConfigMap(t, west, "two")
	g.Eventually(f.reconciled(west, "two")).WithTimeout(patience).Should(BeTrue(), "the others go on")
	g.Expect(f.reconciled(east, "two")()).To(BeFalse(), "a profile that is deleted")
	g.Expect(f.engagements(west)).To(Equal(1))
}

func TestAClusterOutlivesItsToken(t *testing.T) {
	g := NewWithT(t)
	enlist(t, east)
	f := start(t)
	createConfigMap(t, east, "before")
	g.Eventually(f.reconciled(east, "before")).WithTimeout(patience).Should(BeTrue())

	status := f.GetProvider().(*clusterinventoryapi.Provider).Status()
	g.Expect(status).To(HaveLen(1))
	g.Expect(status[0].CredentialExpiry).To(BeTemporally(">", time.Now()))
	g.Expect(status[0].OpenWatches).To(Equal(1))
	g.Expect(status[0].UID).To(BeEmpty(), "its token may read nothing but ConfigMaps")

	old, anchor := east.Token, east.Anchor
	g.Expect(east.ReplaceToken(t.Context())).To(Succeed())
	g.Expect(hub.PutToken(t.Context(), east)).To(Succeed())
	g.Expect(east.Client.Delete(t.Context(), anchor)).To(Succeed())
	g.Eventually(func() (int, error) { return east.Status(t.Context(), old) }).WithTimeout(patience).
		Should(Equal(http.StatusUnauthorized), "the old token is revoked")
	east.Network.Cut() // a watch that is open outlives its token

	createConfigMap(t, east, "after")
	g.Eventually(f.reconciled(east, "after")).WithTimeout(patience).Should(BeTrue())
	cl, err := f.GetCluster(t.Context(), name(east))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(cl.GetAPIReader().List(t.Context(), &corev1.ConfigMapList{})).To(Succeed())
	g.Expect(f.engagements(east)).To(Equal(1))
	g.Expect(logged.contains(old)).To(BeFalse())
}

func TestHeartbeatsTouchNothing(t *testing.T) {
	g := NewWithT(t)
	enlist(t, east)
	enlist(t, west)
	f := start(t)
	for _, m := range []*realfleet.Member{east, west} {
		g.Eventually(f.get(m)).WithTimeout(patience).Should(Succeed())
	}
	for range 10 {
		g.Expect(hub.Heartbeat(t.Context(), east)).To(Succeed())
	}
	// The hub's watch tells of this after the heartbeats.
	g.Expect(hub.Strike(t.Context(), west)).To(Succeed())
	g.Eventually(f.get(west)).WithTimeout(patience).Should(MatchError(multicluster.ErrClusterNotFound))
	createConfigMap(t, east, "after")
	g.Eventually(f.reconciled(east, "after")).WithTimeout(patience).Should(BeTrue())
	g.Expect(f.engagements(east)).To(Equal(1))
}

func TestAMemberThatIsDownAtTheStartHoldsUpNobodyAndIsEngagedWhenItComesUp(t *testing.T) {
	g := NewWithT(t)
	enlist(t, east)
	enlist(t, west)
	createConfigMap(t, east, "one")
	createConfigMap(t, west, "one")
	g.Expect(west.StopAPIServer()).To(Succeed())
	up := false
	t.Cleanup(func() {
		if !up {
			g.Expect(west.StartAPIServer()).To(Succeed())
		}
	})

	f := start(t)
	g.Eventually(f.Elected()).WithTimeout(patience).Should(BeClosed(), "the manager starts")
	g.Eventually(f.reconciled(east, "one")).WithTimeout(patience).Should(BeTrue(), "the other member is reconciled")
	g.Expect(f.get(west)()).To(MatchError(multicluster.ErrClusterNotReady))

	g.Expect(west.StartAPIServer()).To(Succeed())
	up = true
	g.Eventually(f.reconciled(west, "one")).WithTimeout(patience).Should(BeTrue())
	g.Expect(f.engagements(east)).To(Equal(1))
}

// fleet is a controller of ConfigMaps over the hub's clusters.
type fleet struct {
	mcmanager.Manager
	seen *sightings
}

// start runs a controller until the test ends, and looks then for tokens in
// all that was logged so far.
func start(t *testing.T) *fleet {
	t.Helper()
	resolver, err := credentials.New(credentials.Options{
		PluginDirs: []string{pluginDir},
		Providers: []providerfile.Provider{{
			Name: realfleet.AccessProvider,
			ExecConfig: &clientcmdapi.ExecConfig{
				APIVersion:         "client.authentication.k8s.io/v1",
				Command:            "mc-credential-token-secret",
				Args:               []string{"--kubeconfig=" + pluginConfig, "--namespace=" + realfleet.TokenNamespace, "--require-server"},
				ProvideClusterInfo: true,
			},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	provider, err := clusterinventoryapi.New(clusterinventoryapi.Options{Credentials: resolver})
	if err != nil {
		t.Fatal(err)
	}
	hubToken, err := hub.IssueToken(t.Context(), hub.ControllerAccount, nil)
	if err != nil {
		t.Fatal(err)
	}
	hubConfig := rest.AnonymousClientConfig(hub.Config)
	hubConfig.BearerToken = hubToken
	mgr, err := mcmanager.New(hubConfig, provider, mcmanager.Options{Metrics: metricsserver.Options{BindAddress: "0"}})
	if err != nil {
		t.Fatal(err)
	}

	f := &fleet{Manager: mgr, seen: &sightings{reconciled: map[string]bool{}, engaged: map[multicluster.ClusterName]int{}}}
	skip := true
	err = mcbuilder.ControllerManagedBy(mgr).
		For(&corev1.ConfigMap{}).
		WithOptions(mccontroller.Options{SkipNameValidation: &skip}).
		Complete(mcreconcile.Func(func(ctx context.Context, req mcreconcile.Request) (ctrl.Result, error) {
			cl, err := mgr.GetCluster(ctx, req.ClusterName)
			if err != nil {
				return ctrl.Result{}, err
			}
			if err := cl.GetClient().Get(ctx, req.NamespacedName, &corev1.ConfigMap{}); err != nil {
				return ctrl.Result{}, client.IgnoreNotFound(err)
			}
			f.seen.reconcile(req)
			return ctrl.Result{}, nil
		}))
	if err != nil {
		t.Fatal(err)
	}
	if err := mgr.Add(f.seen); err != nil {
		t.Fatal(err)
	}

	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the manager failed: %v", err)
		}
		resolver.Close()
		for _, token := range []string{hubToken, east.Token, west.Token} {
			for _, part := range append(strings.Split(token, "."), token) {
				if len(part) > 40 && logged.contains(part) && !sharedPart(part) {
					t.Error("a token, or a part of one, is in what was logged")
				}
			}
		}
	})
	return f
}

// sharedPart tells whether a part of a token is its header, which says nothing.
func sharedPart(part string) bool {
	return strings.HasPrefix(part, "eyJhbGciOi") // {"alg":
}

func (f *fleet) reconciled(m *realfleet.Member, configMap string) func() bool {
	return func() bool {
		f.seen.mu.Lock()
		defer f.seen.mu.Unlock()
		return f.seen.reconciled[fmt.Sprintf("%s/default/%s", name(m), configMap)]
	}
}

func (f *fleet) engagements(m *realfleet.Member) int {
	f.seen.mu.Lock()
	defer f.seen.mu.Unlock()
	return f.seen.engaged[name(m)]
}

func (f *fleet) get(m *realfleet.Member) func() error {
	return func() error {
		_, err := f.GetCluster(context.Background(), name(m))
		return err
	}
}

// sightings is a component that notes what happens.
type sightings struct {
	mu         sync.Mutex
	reconciled map[string]bool
	engaged    map[multicluster.ClusterName]int
}

func (s *sightings) reconcile(req mcreconcile.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reconciled[req.String()] = true
}

func (s *sightings) Engage(_ context.Context, name multicluster.ClusterName, _ cluster.Cluster) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.engaged[name]++
	return nil
}

func (s *sightings) Start(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

func name(m *realfleet.Member) multicluster.ClusterName {
	return multicluster.ClusterName(realfleet.FleetNamespace + "/" + m.Name)
}

// enlist puts the member on the roll until the test ends.
func enlist(t *testing.T, m *realfleet.Member) {
	t.Helper()
	if err := hub.Enlist(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := hub.Delist(context.Background(), m); err != nil {
			t.Error(err)
		}
	})
}

// createConfigMap creates a ConfigMap until the test ends.
func createConfigMap(t *testing.T, m *realfleet.Member, name string) {
	t.Helper()
	if err := m.CreateConfigMap(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.DeleteConfigMap(context.Background(), name); err != nil {
			t.Error(err)
		}
	})
}
