// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package namespace_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/log"

	mcbuilder "github.com/rollcall-dev/rollcall/pkg/mc/builder"
	"github.com/rollcall-dev/rollcall/pkg/mc/fleet"
	mcmanager "github.com/rollcall-dev/rollcall/pkg/mc/manager"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
	mcreconcile "github.com/rollcall-dev/rollcall/pkg/mc/reconcile"
	"github.com/rollcall-dev/rollcall/providers/namespace"
)

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	SetDefaultEventuallyTimeout(mctest.Timeout)
	// controller-runtime watches metadata through apimachinery's watch.Filter,
	// which may wait forever to hand on the last event of a watch that is stopped.
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("k8s.io/apimachinery/pkg/watch.(*filteredWatch).loop"))
}

func ns(name string, labels ...string) *corev1.Namespace {
	n := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{}}}
	for _, label := range labels {
		n.Labels[label] = "true"
	}
	return n
}

func configMap(namespace, name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: map[string]string{"of": namespace}}
}

// env is a manager with a provider of the namespaces of a server, and a controller of
// ConfigMaps.
type env struct {
	*namespace.Provider
	server  *mctest.Cluster
	cluster cluster.Cluster
	mgr     mcmanager.Manager
	stop    func()

	mu   sync.Mutex // guards seen
	seen []string
}

func start(t testing.TB, server *mctest.Cluster, opts namespace.Options, clusterOpts ...cluster.Option) *env {
	t.Helper()
	g := NewWithT(t)
	cl, err := cluster.New(server.Config(), clusterOpts...)
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(cl.GetHTTPClient().CloseIdleConnections)
	opts.Connection.MinBackoff, opts.Connection.MaxBackoff = time.Millisecond, 20*time.Millisecond
	e := &env{Provider: namespace.NewWithOptions(cl, opts), server: server, cluster: cl}
	e.mgr, err = mcmanager.New(server.Config(), e.Provider, mctest.ManagerOptions())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(e.mgr.GetLocalManager().Add(cl)).To(Succeed())
	g.Expect(mcbuilder.ControllerManagedBy(e.mgr).For(&corev1.ConfigMap{}).
		Complete(mcreconcile.Func(func(_ context.Context, req mcreconcile.Request) (ctrl.Result, error) {
			e.mu.Lock()
			defer e.mu.Unlock()
			e.seen = append(e.seen, req.ClusterName.String()+":"+req.String())
			return ctrl.Result{}, nil
		}))).To(Succeed())
	e.stop = mctest.StartManager(t, e.mgr)
	return e
}

// quick are options with probes at short intervals.
func quick() namespace.Options {
	return namespace.Options{Connection: fleet.ConnectionOptions{
		Probe: fleet.ProbeOptions{Interval: 10 * time.Millisecond, FailureThreshold: 1},
	}}
}

func (e *env) reconciled() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.seen)
}

func (e *env) state(name multicluster.ClusterName) func() fleet.State {
	return func() fleet.State {
		for _, s := range e.Status() {
			if s.Name == name {
				return s.State
			}
		}
		return ""
	}
}

// engaged waits for the cluster of a namespace.
func (e *env) engaged(g *WithT, name multicluster.ClusterName) cluster.Cluster {
	g.Eventually(e.state(name)).Should(Equal(fleet.Ready))
	cl, err := e.mgr.GetCluster(context.Background(), name)
	g.Expect(err).NotTo(HaveOccurred())
	return cl
}

func namesOf(g *WithT, reader client.Reader, opts ...client.ListOption) []string {
	list := &corev1.ConfigMapList{}
	g.Expect(reader.List(context.Background(), list, opts...)).To(Succeed())
	var names []string
	for _, one := range list.Items {
		names = append(names, one.Namespace+"/"+one.Name)
	}
	return names
}
