// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"go.uber.org/goleak"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"github.com/rollcall-dev/rollcall/internal/exampletest"
	"github.com/rollcall-dev/rollcall/pkg/inventory"
	"github.com/rollcall-dev/rollcall/pkg/inventory/hub"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
	clusterinventoryapi "github.com/rollcall-dev/rollcall/providers/cluster-inventory-api"
)

func TestMain(m *testing.M) {
	if !exampletest.Main(main) {
		SetDefaultEventuallyTimeout(mctest.Timeout)
		goleak.VerifyTestMain(m)
	}
}

func TestWrongFlags(t *testing.T) {
	for _, test := range []struct {
		name, flag, value, text string
	}{
		{"a property without a value", "--property", "region", "must be name=value"},
		{"a placement without a key", "--placement", "fleet/", "must specify either Placement.DecisionKey or Placement.Name"},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			output, exitCode := exampletest.Run(t, test.flag, test.value)
			g.Expect(exitCode).NotTo(BeZero())
			g.Expect(output).To(ContainSubstring(test.text))
		})
	}
}

func start(t *testing.T, h *exampletest.Hub, options clusterinventoryapi.Options) *exampletest.Output {
	t.Helper()
	g, out := NewWithT(t), &exampletest.Output{}
	options.Credentials, options.Namespace = h, "default"
	mgr, err := newManager(h.Config(), options, out, mctest.ManagerOptions())
	g.Expect(err).NotTo(HaveOccurred())
	mctest.StartManager(t, mgr)
	return out
}

func TestProperties(t *testing.T) {
	g := NewWithT(t)
	h := exampletest.NewHub(t, 2)
	region := func(value string) []v1alpha1.Property { return []v1alpha1.Property{{Name: "region", Value: value}} }
	h.Join(t, h.Members.Cluster(0), &inventory.Profile{Status: v1alpha1.ClusterProfileStatus{Properties: region("eu")}})
	h.Join(t, h.Members.Cluster(1), &inventory.Profile{Status: v1alpha1.ClusterProfileStatus{Properties: region("us")}})
	expression := inventory.PropertyExpression{Name: "region", Operator: inventory.PropertyIn, Values: []string{"eu"}}
	out := start(t, h, clusterinventoryapi.Options{Selection: inventory.Selection{Properties: []inventory.PropertyExpression{expression}}})
	g.Eventually(out.String).Should(Equal("Cluster \"default/cluster-0\" is selected\n"))

	profile := &inventory.Profile{}
	g.Expect(h.Get(inventory.Key{Namespace: "default", Name: "cluster-0"}, profile)).To(Succeed())
	profile.Status.Properties = region("us")
	g.Expect(h.UpdateStatus(profile)).To(Succeed())
	g.Eventually(out.String).Should(HaveSuffix("Cluster \"default/cluster-0\" is no longer selected\n"))
	g.Expect(h.Members.Cluster(1).Connections()).To(BeZero(), "it was never selected")
}

func TestPlacement(t *testing.T) {
	g := NewWithT(t)
	h := exampletest.NewHub(t, 2)
	h.Join(t, h.Members.Cluster(0), nil)
	h.Join(t, h.Members.Cluster(1), nil)
	decision := func(name string) *v1alpha1.PlacementDecision {
		d := &v1alpha1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", Labels: map[string]string{v1alpha1.DecisionKeyLabel: "web"}}}
		d.Decisions = []v1alpha1.ClusterDecision{{ClusterProfileRef: v1alpha1.ClusterProfileReference{Name: name}}}
		return d
	}
	g.Expect(h.Create(decision("cluster-0"))).To(Succeed())
	out := start(t, h, clusterinventoryapi.Options{Placement: &hub.Placement{Namespace: "default", DecisionKey: "web", Grace: 50 * time.Millisecond}})
	g.Eventually(out.String).Should(Equal("Cluster \"default/cluster-0\" is selected\n"))
	g.Expect(h.Update(decision("cluster-1"))).To(Succeed())
	g.Eventually(out.String).Should(And(ContainSubstring(`Cluster "default/cluster-1" is selected`), ContainSubstring(`Cluster "default/cluster-0" is no longer selected`)))
}
