// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	mcbuilder "github.com/rollcall-dev/rollcall/pkg/mc/builder"
	"github.com/rollcall-dev/rollcall/pkg/mc/fleet"
	mcmanager "github.com/rollcall-dev/rollcall/pkg/mc/manager"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
	mcreconcile "github.com/rollcall-dev/rollcall/pkg/mc/reconcile"
)

// A source that cannot sync must not hold a startup slot until ConnectTimeout.
func TestUnusableKindsFreeSlots(t *testing.T) {
	const unusable, healthy, limit = 16, 2, 2
	widget := &unstructured.Unstructured{}
	widget.SetGroupVersionKind(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"})
	for _, tc := range []struct {
		name  string
		spoil func(g *WithT, c *mctest.Cluster)
	}{
		{"missing", func(*WithT, *mctest.Cluster) {}},
		{"forbidden", func(g *WithT, c *mctest.Cluster) {
			g.Expect(c.Create(widgetDefinition())).To(Succeed())
			c.Fault(mctest.Forbidden.On("widgets"))
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			clusters := mctest.NewFleet(t, unusable+healthy).Clusters()
			for _, c := range clusters[:unusable] {
				tc.spoil(g, c)
			}
			for _, c := range clusters[unusable:] {
				one := widget.DeepCopy()
				one.SetNamespace(metav1.NamespaceDefault)
				one.SetName("one")
				g.Expect(c.Create(widgetDefinition(), one)).To(Succeed())
			}
			source := newFakeSource()
			f, err := fleet.New(fleet.Options{
				Source: source, Credentials: newFakeMethod(clusters...),
				Connection: fleet.ConnectionOptions{StartupLimit: limit, ConnectTimeout: time.Hour},
			})
			g.Expect(err).NotTo(HaveOccurred())
			mgr, err := mcmanager.New(clusters[0].Config(), f, mctest.ManagerOptions())
			g.Expect(err).NotTo(HaveOccurred())
			reconciled := make(chan multicluster.ClusterName, 100)
			g.Expect(mcbuilder.ControllerManagedBy(mgr).For(widget).Complete(mcreconcile.Func(
				func(_ context.Context, req mcreconcile.Request) (reconcile.Result, error) {
					reconciled <- req.ClusterName
					return reconcile.Result{}, nil
				}))).To(Succeed())
			mctest.StartManager(t, mgr)
			for _, c := range clusters {
				source.put(profile(c.Name(), c.Config().Host))
			}
			seen := map[multicluster.ClusterName]bool{}
			for len(seen) < healthy {
				select {
				case name := <-reconciled:
					seen[name] = true
				case <-time.After(mctest.Timeout):
					t.Fatalf("only the clusters %v are reconciled", seen)
				}
			}
			g.Expect(seen).To(And(HaveKey(name(clusters[unusable])), HaveKey(name(clusters[unusable+1]))))
		})
	}
}
