// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package single_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/log"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	mcbuilder "github.com/rollcall-dev/rollcall/pkg/mc/builder"
	"github.com/rollcall-dev/rollcall/pkg/mc/fleet"
	mcmanager "github.com/rollcall-dev/rollcall/pkg/mc/manager"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
	mcreconcile "github.com/rollcall-dev/rollcall/pkg/mc/reconcile"
	"github.com/rollcall-dev/rollcall/providers/single"
)

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	SetDefaultEventuallyTimeout(mctest.Timeout)
	goleak.VerifyTestMain(m)
}

func TestProvider(t *testing.T) {
	g := NewWithT(t)
	home, server := mctest.New(t), mctest.New(t)
	cl, err := cluster.New(server.Config())
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(cl.GetHTTPClient().CloseIdleConnections)
	provider := single.New("eu", cl)
	mgr, err := mcmanager.New(home.Config(), provider, mcmanager.Options{
		Metrics: metricsserver.Options{BindAddress: "0"}, Controller: config.Controller{SkipNameValidation: ptr.To(true)},
	})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(mgr.GetLocalManager().Add(cl)).To(Succeed())
	g.Expect(mgr.GetCluster(t.Context(), "eu")).To(BeIdenticalTo(cl), "also before the start")
	_, err = mgr.GetCluster(t.Context(), "us")
	g.Expect(err).To(MatchError(multicluster.ErrClusterNotFound))
	g.Expect(provider.IndexField(t.Context(), &corev1.ConfigMap{}, "name", func(o client.Object) []string { return []string{o.GetName()} })).To(Succeed())

	requests := make(chan string, 100)
	g.Expect(mcbuilder.ControllerManagedBy(mgr).For(&corev1.ConfigMap{}).
		Complete(mcreconcile.Func(func(_ context.Context, req mcreconcile.Request) (ctrl.Result, error) {
			requests <- fmt.Sprint(req.ClusterName, "/", req.Name)
			return ctrl.Result{}, nil
		}))).To(Succeed())
	g.Expect(server.Create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}})).To(Succeed())
	stop := mctest.StartManager(t, mgr)
	g.Eventually(requests).WithTimeout(mctest.Timeout).Should(Receive(Equal("eu/a")))
	found := &corev1.ConfigMapList{}
	g.Expect(cl.GetCache().List(t.Context(), found, client.MatchingFields{"name": "a"})).To(Succeed())
	g.Expect(found.Items).To(HaveLen(1))
	g.Expect(provider.Status()).To(ConsistOf(And(HaveField("State", fleet.Ready), HaveField("UID", Not(BeEmpty())))))
	stop()
}

// The cluster is down when the provider starts.
func TestOutage(t *testing.T) {
	g := NewWithT(t)
	server := mctest.New(t)
	lift := server.Fault(mctest.Refuse)
	cl, err := cluster.New(server.Config())
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(cl.GetHTTPClient().CloseIdleConnections)
	provider := single.New("eu", cl)
	mgr, err := mcmanager.New(mctest.New(t).Config(), provider, mctest.ManagerOptions())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(mgr.GetLocalManager().Add(cl)).To(Succeed())
	stop := mctest.StartManager(t, mgr)
	g.Eventually(provider.Status).Should(ConsistOf(And(HaveField("State", fleet.Backoff), HaveField("LastError", ContainSubstring("refused")))))
	g.Expect(provider.ClusterNames()).To(BeEmpty())
	lift()
	g.Eventually(provider.ClusterNames).Should(ConsistOf(multicluster.ClusterName("eu")))
	stop()
	g.Expect(provider.ClusterNames()).To(BeEmpty())
}

func TestInvalidArguments(t *testing.T) {
	for name, provider := range map[string]*single.Provider{
		"no name":    single.New("", struct{ cluster.Cluster }{}),
		"no cluster": single.New("eu", nil),
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(multicluster.IsTerminal(provider.Start(t.Context(), nil))).To(BeTrue())
			_, err := provider.Get(t.Context(), "eu")
			g.Expect(err).To(MatchError(multicluster.ErrClusterNotFound))
		})
	}
}
