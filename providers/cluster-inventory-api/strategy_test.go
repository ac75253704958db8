// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package clusterinventoryapi_test

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/cluster-inventory-api/pkg/access"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/rollcall-dev/rollcall/pkg/credentials"
	"github.com/rollcall-dev/rollcall/pkg/inventory"
	"github.com/rollcall-dev/rollcall/pkg/mc/fleet"
	mcmanager "github.com/rollcall-dev/rollcall/pkg/mc/manager"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
	clusterinventoryapi "github.com/rollcall-dev/rollcall/providers/cluster-inventory-api"
	"github.com/rollcall-dev/rollcall/providers/cluster-inventory-api/kubeconfigstrategy"
)

// secretHub returns a hub with the profile default/eu.
func secretHub(t *testing.T) *mctest.Cluster {
	t.Helper()
	g := NewWithT(t)
	scheme := runtime.NewScheme()
	g.Expect(v1alpha1.AddToScheme(scheme)).To(Succeed())
	hub := mctest.New(t, mctest.Options{Scheme: scheme})
	createHealthy(g, hub, &inventory.Profile{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "eu"}})
	return hub
}

// createHealthy creates a profile of a cluster whose control plane is healthy.
func createHealthy(g *WithT, hub *mctest.Cluster, profile *inventory.Profile) {
	g.Expect(hub.Create(profile)).To(Succeed())
	profile.Status.Conditions = []metav1.Condition{{
		Type: inventory.ConditionControlPlaneHealthy, Status: metav1.ConditionTrue, Reason: "Test", LastTransitionTime: metav1.Now(),
	}}
	g.Expect(hub.UpdateStatus(profile)).To(Succeed())
}

// secretProvider returns a provider that reads Secrets.
func secretProvider(t *testing.T) *clusterinventoryapi.Provider {
	t.Helper()
	provider, err := clusterinventoryapi.New(clusterinventoryapi.Options{
		KubeconfigStrategyOption: kubeconfigstrategy.Option{
			Secret: &kubeconfigstrategy.SecretStrategyOption{ConsumerName: "test"},
		},
	})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return provider
}

// secretWith returns a Secret with the config for the profile default/eu.
func secretWith(g *WithT, config *rest.Config) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "eu-kubeconfig", Labels: map[string]string{
			kubeconfigstrategy.SecretLabelKeyClusterInventoryConsumer: "test",
			kubeconfigstrategy.SecretLabelKeyClusterProfile:           "eu",
		}},
		Data: map[string][]byte{kubeconfigstrategy.SecretDataKeyKubeConfig: kubeconfig(g, config)},
	}
}

// run runs the manager until the test ends.
func run(t *testing.T, mgr mcmanager.Manager) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("manager failed: %v", err)
		}
	})
}

func stateOf(provider *clusterinventoryapi.Provider) func() fleet.State {
	return func() fleet.State {
		for _, s := range provider.Status() {
			return s.State
		}
		return ""
	}
}

func TestSecretStrategy(t *testing.T) {
	g := NewWithT(t)
	hub, member, provider := secretHub(t), mctest.New(t), secretProvider(t)
	mgr, err := mcmanager.New(hub.Config(), provider, mcmanager.Options{Metrics: metricsserver.Options{BindAddress: "0"}})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(provider.SetupWithManager(mgr)).To(Succeed())
	g.Expect(provider.SetupWithManager(mgr)).To(Succeed(), "a second call does nothing")
	run(t, mgr)
	g.Eventually(stateOf(provider)).WithTimeout(timeout).Should(Equal(fleet.Backoff), "the Secret does not exist yet")
	g.Expect(provider.Status()[0].LastError).To(ContainSubstring("no Secret"))

	secret := secretWith(g, member.Config())
	g.Expect(hub.Create(secret)).To(Succeed())
	g.Eventually(stateOf(provider)).WithTimeout(timeout).Should(Equal(fleet.Ready), "the event of the Secret ends the backoff")
	cl, err := mgr.GetCluster(t.Context(), "default/eu")
	g.Expect(err).NotTo(HaveOccurred())

	member.AddToken("new", "user", "system:masters")
	secret.Data[kubeconfigstrategy.SecretDataKeyKubeConfig] = kubeconfig(g, member.ConfigFor("new"))
	g.Expect(hub.Update(secret)).To(Succeed())
	g.Eventually(func() string { return cl.GetConfig().BearerToken }).WithTimeout(timeout).Should(Equal("new"), "the cluster is not replaced")
}

func TestSecretStrategyWithLimitedCache(t *testing.T) {
	g := NewWithT(t)
	hub, member, provider := secretHub(t), mctest.New(t), secretProvider(t)
	forOthers := secretWith(g, member.Config())
	forOthers.Name, forOthers.Labels = "other", nil
	elsewhere := secretWith(g, member.Config())
	elsewhere.Namespace = "kube-public"
	g.Expect(hub.Create(secretWith(g, member.Config()), forOthers, elsewhere)).To(Succeed())
	mgr, err := mcmanager.New(hub.Config(), provider, mcmanager.Options{
		Metrics: metricsserver.Options{BindAddress: "0"},
		Cache: cache.Options{ByObject: map[client.Object]cache.ByObject{
			&corev1.Secret{}: {
				Namespaces: map[string]cache.Config{"default": {}},
				Label:      labels.SelectorFromSet(labels.Set{kubeconfigstrategy.SecretLabelKeyClusterInventoryConsumer: "test"}),
			},
		}},
	})
	g.Expect(err).NotTo(HaveOccurred())
	run(t, mgr)
	g.Eventually(stateOf(provider)).WithTimeout(timeout).Should(Equal(fleet.Ready))
	held := &corev1.SecretList{}
	g.Expect(mgr.GetLocalManager().GetClient().List(t.Context(), held)).To(Succeed())
	g.Expect(held.Items).To(HaveLen(1))
}

func TestSecretStrategyWithoutElection(t *testing.T) {
	for _, early := range []bool{false, true} {
		t.Run(map[bool]string{false: "set up by the manager", true: "set up by the program"}[early], func(t *testing.T) {
			g := NewWithT(t)
			hub, member := secretHub(t), mctest.New(t)
			secret := secretWith(g, member.Config())
			g.Expect(hub.Create(secret)).To(Succeed())
			replica := func() (mcmanager.Manager, *clusterinventoryapi.Provider) {
				provider, lease, renew, retry := secretProvider(t), 6*time.Second, 4*time.Second, 100*time.Millisecond
				mgr, err := mcmanager.New(hub.Config(), provider, mcmanager.Options{
					Metrics:        metricsserver.Options{BindAddress: "0"},
					LeaderElection: true, LeaderElectionID: "test", LeaderElectionNamespace: "default",
					LeaderElectionReleaseOnCancel: true,
					LeaseDuration:                 &lease, RenewDeadline: &renew, RetryPeriod: &retry,
				}, mcmanager.WithProviderNeedLeaderElection(false))
				g.Expect(err).NotTo(HaveOccurred())
				if early {
					g.Expect(provider.SetupWithManager(mgr)).To(Succeed())
				}
				run(t, mgr)
				return mgr, provider
			}
			leader, _ := replica()
			g.Eventually(leader.Elected()).WithTimeout(timeout).Should(BeClosed())
			other, provider := replica()
			g.Eventually(stateOf(provider)).WithTimeout(timeout).Should(Equal(fleet.Ready))
			cl, err := other.GetCluster(t.Context(), "default/eu")
			g.Expect(err).NotTo(HaveOccurred())

			member.AddToken("new", "user", "system:masters")
			secret.Data[kubeconfigstrategy.SecretDataKeyKubeConfig] = kubeconfig(g, member.ConfigFor("new"))
			g.Expect(hub.Update(secret)).To(Succeed())
			g.Eventually(func() string { return cl.GetConfig().BearerToken }).WithTimeout(timeout).Should(Equal("new"))
			g.Expect(other.Elected()).NotTo(BeClosed())
		})
	}
}

func TestInvalidStrategies(t *testing.T) {
	secret := kubeconfigstrategy.Option{Secret: &kubeconfigstrategy.SecretStrategyOption{ConsumerName: "test"}}
	for _, tc := range []struct {
		name string
		opts clusterinventoryapi.Options
		want string
	}{
		{"none", clusterinventoryapi.Options{}, "must specify Options.Credentials"},
		{"credentials and a strategy", clusterinventoryapi.Options{Credentials: &credentials.Resolver{}, KubeconfigStrategyOption: secret}, "set either"},
		{"Secrets of a hub other than the manager's cluster", clusterinventoryapi.Options{Hub: &rest.Config{}, KubeconfigStrategyOption: secret}, "do not set Options.Hub"},
		{"two strategies", clusterinventoryapi.Options{KubeconfigStrategyOption: kubeconfigstrategy.Option{
			Secret: secret.Secret, AccessProvider: &kubeconfigstrategy.AccessProviderOption{Provider: &access.Config{}},
		}}, "exactly one"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := clusterinventoryapi.New(tc.opts)
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(tc.want)))
		})
	}
}

const timeout = 30 * time.Second

// kubeconfig returns the configuration as a kubeconfig.
func kubeconfig(g *WithT, config *rest.Config) []byte {
	file := clientcmdapi.NewConfig()
	file.Clusters["c"] = &clientcmdapi.Cluster{Server: config.Host, CertificateAuthorityData: config.CAData}
	file.AuthInfos["u"] = &clientcmdapi.AuthInfo{Token: config.BearerToken}
	file.Contexts["x"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	file.CurrentContext = "x"
	text, err := clientcmd.Write(*file)
	g.Expect(err).NotTo(HaveOccurred())
	return text
}
