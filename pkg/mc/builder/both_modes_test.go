// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package builder_test

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	mcbuilder "github.com/rollcall-dev/rollcall/pkg/mc/builder"
	mccontext "github.com/rollcall-dev/rollcall/pkg/mc/context"
	mcmanager "github.com/rollcall-dev/rollcall/pkg/mc/manager"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
	mcreconcile "github.com/rollcall-dev/rollcall/pkg/mc/reconcile"
)

// marker is a reconciler that was written for one cluster. It labels objects.
type marker struct {
	// clusterOf is the only part that depends on the number of clusters.
	clusterOf func(context.Context) (cluster.Cluster, error)
}

func (m *marker) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	cl, err := m.clusterOf(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}
	cm := &corev1.ConfigMap{}
	if err := cl.GetClient().Get(ctx, req.NamespacedName, cm); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if cm.Labels["marked"] != "" {
		return reconcile.Result{}, nil
	}
	cm.Labels = map[string]string{"marked": "yes"}
	return reconcile.Result{}, cl.GetClient().Update(ctx, cm)
}

func TestReconcilerOfOneCluster(t *testing.T) {
	for _, tc := range []struct {
		name string
		// run adds the reconciler to a manager and returns the manager.
		run  func(g Gomega, w *fixture) interface{ Start(context.Context) error }
		want map[string]bool // where objects are marked
	}{
		{
			name: "under controller-runtime",
			run: func(g Gomega, w *fixture) interface{ Start(context.Context) error } {
				mgr := w.mgr.GetLocalManager()
				single := &marker{func(context.Context) (cluster.Cluster, error) { return mgr, nil }}
				g.Expect(ctrl.NewControllerManagedBy(mgr).For(&corev1.ConfigMap{}).Complete(single)).To(Succeed())
				return mgr
			},
			want: map[string]bool{"local": true},
		},
		{
			name: "local cluster only",
			run: func(g Gomega, w *fixture) interface{ Start(context.Context) error } {
				mgr, err := mcmanager.WithMultiCluster(w.mgr.GetLocalManager(), nil)
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(mcbuilder.ControllerManagedBy(mgr).For(&corev1.ConfigMap{}).
					Complete(mccontext.ReconcilerWithClusterInContext(&marker{mgr.ClusterFromContext}))).To(Succeed())
				return mgr
			},
			want: map[string]bool{"local": true},
		},
		{
			name: "clusters of a provider",
			run: func(g Gomega, w *fixture) interface{ Start(context.Context) error } {
				g.Expect(mcbuilder.ControllerManagedBy(w.mgr).For(&corev1.ConfigMap{}).
					Complete(mccontext.ReconcilerWithClusterInContext(&marker{w.mgr.ClusterFromContext}))).To(Succeed())
				return w.mgr
			},
			want: map[string]bool{"eu": true, "us": true},
		},
		{
			name: "without ReconcilerWithClusterInContext",
			run: func(g Gomega, w *fixture) interface{ Start(context.Context) error } {
				m := &marker{w.mgr.ClusterFromContext}
				g.Expect(mcbuilder.ControllerManagedBy(w.mgr).For(&corev1.ConfigMap{}, mcbuilder.WithEngageWithLocalCluster(true)).
					Complete(mcreconcile.Func(func(ctx context.Context, req mcreconcile.Request) (reconcile.Result, error) {
						return m.Reconcile(ctx, req.Request)
					}))).To(Succeed())
				return w.mgr
			},
			want: map[string]bool{"local": true, "eu": true, "us": true},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			w := newFixture(t, []client.Object{configMap("a")})
			mctest.StartManager(t, tc.run(g, w))
			marked := func() map[string]bool {
				where := map[string]bool{}
				for name, server := range map[string]*mctest.Cluster{"local": w.local, "eu": w.eu, "us": w.us} {
					cm := &corev1.ConfigMap{}
					if err := server.Get(client.ObjectKey{Namespace: "default", Name: "a"}, cm); err != nil {
						t.Error(err)
					}
					if cm.Labels["marked"] != "" {
						where[name] = true
					}
				}
				return where
			}
			g.Eventually(marked).WithTimeout(mctest.Timeout).Should(Equal(tc.want))
			g.Consistently(marked).WithTimeout(settle).Should(Equal(tc.want))
		})
	}
}
