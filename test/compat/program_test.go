// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"context"
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	multiclusterruntime "sigs.k8s.io/multicluster-runtime"
	mcbuilder "sigs.k8s.io/multicluster-runtime/pkg/builder"
	mccontext "sigs.k8s.io/multicluster-runtime/pkg/context"
	mccontroller "sigs.k8s.io/multicluster-runtime/pkg/controller"
	mchandler "sigs.k8s.io/multicluster-runtime/pkg/handler"
	mcmanager "sigs.k8s.io/multicluster-runtime/pkg/manager"
	"sigs.k8s.io/multicluster-runtime/pkg/manager/coordinator/basic"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"
	clusterinventoryapi "sigs.k8s.io/multicluster-runtime/providers/cluster-inventory-api"
	"sigs.k8s.io/multicluster-runtime/providers/cluster-inventory-api/kubeconfigstrategy"
	"sigs.k8s.io/multicluster-runtime/providers/single"

	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
	ours "github.com/rollcall-dev/rollcall/pkg/mc/multicluster"

	"github.com/rollcall-dev/rollcall/test/compat/steps"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// setUp is the program: it writes into each ConfigMap how many Secrets are beside
// it, in the same cluster.
func setUp(local *rest.Config, provider multicluster.Provider, opts mcmanager.Options) (multiclusterruntime.Manager, error) {
	mgr, err := mcmanager.New(local, provider, opts, mcmanager.WithCoordinator(basic.New()))
	if err != nil {
		return nil, err
	}
	count := steps.Func[*corev1.ConfigMap](func(ctx context.Context, cl cluster.Cluster, req mcreconcile.Request, cm *corev1.ConfigMap) error {
		if name, ok := mccontext.ClusterFrom(ctx); !ok || name != req.ClusterName {
			return errors.New("the context is that of another cluster")
		}
		secrets := &corev1.SecretList{}
		if err := cl.GetClient().List(ctx, secrets, client.InNamespace(req.Namespace)); err != nil {
			return err
		}
		names := map[string]string{}
		for _, secret := range secrets.Items {
			names[secret.Name] = req.ClusterName.String()
		}
		_, err := multiclusterruntime.CreateOrUpdate(ctx, cl.GetClient(), cm, func() error {
			cm.Data = names
			return nil
		})
		return err
	})
	isReport := predicate.NewPredicateFuncs(func(obj client.Object) bool { return obj.GetName() == "report" })
	lifecycle := steps.New(mgr, func() *corev1.ConfigMap { return &corev1.ConfigMap{} }, steps.Step[*corev1.ConfigMap](count))
	c, err := lifecycle.SetUp("report", mccontroller.Options{MaxConcurrentReconciles: 2},
		mcbuilder.WithPredicates(isReport), mcbuilder.WithEngageWithLocalCluster(false))
	if err != nil {
		return nil, err
	}
	return mgr, steps.Also(c, &corev1.Secret{}, mchandler.TypedEnqueueRequestsFromMapFunc(
		func(_ context.Context, secret *corev1.Secret) []mcreconcile.Request {
			return []mcreconcile.Request{{Request: ctrl.Request{NamespacedName: client.ObjectKey{Namespace: secret.Namespace, Name: "report"}}}}
		}))
}

func TestProgram(t *testing.T) {
	g := NewWithT(t)
	report := &corev1.ConfigMap{}
	report.Namespace, report.Name = "default", "report"
	f := mctest.NewFleet(t, 3, mctest.Options{Objects: []client.Object{report}})
	members := map[multicluster.ClusterName]cluster.Cluster{}
	for _, c := range f.Clusters()[1:] {
		cl, err := cluster.New(c.Config())
		g.Expect(err).NotTo(HaveOccurred())
		members[multicluster.ClusterName(c.Name())] = cl
	}
	mgr, err := setUp(f.Cluster(0).Config(), steps.NewProvider(members), mctest.ManagerOptions())
	g.Expect(err).NotTo(HaveOccurred())
	mctest.StartManager(t, mgr)

	data := func(c *mctest.Cluster) func() map[string]string {
		return func() map[string]string {
			cm := &corev1.ConfigMap{}
			g.Expect(c.Get(client.ObjectKeyFromObject(report), cm)).To(Succeed())
			return cm.Data
		}
	}
	want := map[*mctest.Cluster]map[string]string{}
	for i, c := range f.Clusters() {
		want[c] = map[string]string{}
		for _, name := range []string{"a", "b", "c"}[:i+1] {
			secret := &corev1.Secret{}
			secret.Namespace, secret.Name = "default", name
			g.Expect(c.Create(secret)).To(Succeed())
			want[c][name] = c.Name()
		}
	}
	for _, c := range f.Clusters()[1:] {
		g.Eventually(data(c)).WithTimeout(mctest.Timeout).Should(Equal(want[c]), c.Name())
	}
	g.Expect(data(f.Cluster(0))()).To(BeEmpty(), "the local cluster is not watched")

	_, err = mgr.GetCluster(t.Context(), "none")
	g.Expect(errors.Is(err, multicluster.ErrClusterNotFound)).To(BeTrue())
	g.Expect(errors.Is(err, ours.ErrClusterNotFound)).To(BeTrue(), "there is one such error")
}

func TestProviders(t *testing.T) {
	g := NewWithT(t)
	inventory, err := clusterinventoryapi.New(clusterinventoryapi.Options{
		KubeconfigStrategyOption: kubeconfigstrategy.Option{Secret: &kubeconfigstrategy.SecretStrategyOption{ConsumerName: "test"}},
	})
	g.Expect(err).NotTo(HaveOccurred())
	cl, err := cluster.New(&rest.Config{Host: "https://127.0.0.1:6443"})
	g.Expect(err).NotTo(HaveOccurred())
	for _, provider := range []multicluster.Provider{inventory, single.New("only", cl)} {
		_, err := provider.Get(t.Context(), "none")
		g.Expect(err).To(MatchError(ours.ErrClusterNotFound))
	}
}
