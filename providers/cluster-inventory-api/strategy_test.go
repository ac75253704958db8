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
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/cluster-inventory-api/pkg/access"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/rollcall-dev/rollcall/pkg/credentials"
	"github.com/rollcall-dev/rollcall/pkg/inventory"
	"github.com/rollcall-dev/rollcall/pkg/mc/fleet"
	mcmanager "github.com/rollcall-dev/rollcall/pkg/mc/manager"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
	clusterinventoryapi "github.com/rollcall-dev/rollcall/providers/cluster-inventory-api"
	"github.com/rollcall-dev/rollcall/providers/cluster-inventory-api/kubeconfigstrategy"
)

func TestClustersAreOpenedByKubeconfigsInSecrets(t *testing.T) {
	g := NewWithT(t)
	scheme := runtime.NewScheme()
	g.Expect(v1alpha1.AddToScheme(scheme)).To(Succeed())
	hub := mctest.New(t, mctest.Options{Scheme: scheme})
	member := mctest.New(t)
	g.Expect(hub.Create(&inventory.Profile{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "eu"}})).To(Succeed())

	provider, err := clusterinventoryapi.New(clusterinventoryapi.Options{
		KubeconfigStrategyOption: kubeconfigstrategy.Option{
			Secret: &kubeconfigstrategy.SecretStrategyOption{ConsumerName: "test"},
		},
	})
	g.Expect(err).NotTo(HaveOccurred())
	mgr, err := mcmanager.New(hub.Config(), provider, mcmanager.Options{Metrics: metricsserver.Options{BindAddress: "0"}})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(provider.SetupWithManager(mgr)).To(Succeed())
	g.Expect(provider.SetupWithManager(mgr)).To(Succeed(), "the first call counts")
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	defer func() {
		cancel()
		g.Expect(<-ended).To(Succeed())
	}()

	state := func() fleet.State {
		for _, s := range provider.Status() {
			return s.State
		}
		return ""
	}
	g.Eventually(state).WithTimeout(patience).Should(Equal(fleet.Backoff), "there is no Secret yet")
	g.Expect(provider.Status()[0].LastError).To(ContainSubstring("no Secret"))

	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "eu-kubeconfig", Labels: map[string]string{
			kubeconfigstrategy.SecretLabelKeyClusterInventoryConsumer: "test",
			kubeconfigstrategy.SecretLabelKeyClusterProfile:           "eu",
		}},
		Data: map[string][]byte{kubeconfigstrategy.SecretDataKeyKubeConfig: kubeconfig(g, member.Config())},
	}
	g.Expect(hub.Create(secret)).To(Succeed())
	g.Eventually(state).WithTimeout(patience).Should(Equal(fleet.Ready), "the Secret's event ends the wait")
	cl, err := mgr.GetCluster(t.Context(), "default/eu")
	g.Expect(err).NotTo(HaveOccurred())

	member.AddToken("new", "somebody", "system:masters")
	secret.Data[kubeconfigstrategy.SecretDataKeyKubeConfig] = kubeconfig(g, member.ConfigFor("new"))
	g.Expect(hub.Update(secret)).To(Succeed())
	g.Eventually(func() string { return cl.GetConfig().BearerToken }).WithTimeout(patience).Should(Equal("new"), "the cluster outlives its kubeconfig")
}

func TestStrategiesThatMakeNoSenseAreRefused(t *testing.T) {
	secret := kubeconfigstrategy.Option{Secret: &kubeconfigstrategy.SecretStrategyOption{ConsumerName: "test"}}
	for _, tc := range []struct {
		name string
		opts clusterinventoryapi.Options
		want string
	}{
		{"none at all", clusterinventoryapi.Options{}, "must specify Options.Credentials"},
		{"both ways", clusterinventoryapi.Options{Credentials: &credentials.Resolver{}, KubeconfigStrategyOption: secret}, "set either"},
		{"Secrets of another hub than the manager's", clusterinventoryapi.Options{Hub: &rest.Config{}, KubeconfigStrategyOption: secret}, "leave Options.Hub out"},
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

const patience = 30 * time.Second

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
