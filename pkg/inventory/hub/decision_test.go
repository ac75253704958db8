// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package hub_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"github.com/rollcall-dev/rollcall/pkg/inventory/hub"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
)

// aDay is a grace that does not end during a test.
const aDay = 24 * time.Hour

func TestPlacementSelectsClusters(t *testing.T) {
	g := NewWithT(t)
	c := newHub(t)
	elsewhere := profile("c", "1")
	elsewhere.Namespace = "kube-public"
	g.Expect(c.Create(profile("a", "1"), profile("b", "1"), profile("c", "1"), elsewhere)).To(Succeed())
	g.Expect(c.Create(decision("first", "wanted", "a"), decision("other", "unwanted", "c"))).To(Succeed())
	second := decision("second", "wanted", "c", "not-there")
	second.Decisions[0].ClusterProfileRef.Namespace = "kube-public"
	g.Expect(c.Create(second)).To(Succeed())

	sink := run(t, c, hub.Options{Namespaces: everywhere, Placement: &hub.Placement{Namespace: "default", DecisionKey: "wanted", Grace: 1}})
	g.Eventually(sink.synced).WithTimeout(timeout).Should(BeTrue())
	g.Expect(sink.content()).To(Equal("default/a=1 kube-public/c=1"))

	g.Expect(c.Create(decision("third", "wanted", "b"))).To(Succeed())
	g.Eventually(sink.content).WithTimeout(timeout).Should(Equal("default/a=1 default/b=1 kube-public/c=1"))
	g.Expect(c.Update(decision("first", "wanted"))).To(Succeed())
	g.Eventually(sink.content).WithTimeout(timeout).Should(Equal("default/b=1 kube-public/c=1"))
	g.Expect(c.Create(profile("not-there", "1"))).To(Succeed())
	g.Expect(c.Update(profile("b", "2"))).To(Succeed())
	g.Eventually(sink.content).WithTimeout(timeout).Should(Equal("default/b=2 default/not-there=1 kube-public/c=1"),
		"a cluster may be selected before its profile exists")
}

func TestPlacementByName(t *testing.T) {
	g := NewWithT(t)
	c := newHub(t)
	single := decision("single", "", "a")
	single.Labels = nil
	g.Expect(c.Create(profile("a", "1"), profile("b", "1"), single, decision("other", "", "b"))).To(Succeed())
	sink := run(t, c, hub.Options{Namespaces: everywhere, Placement: &hub.Placement{Namespace: "default", Name: "single"}})
	g.Eventually(sink.synced).WithTimeout(timeout).Should(BeTrue())
	g.Expect(sink.content()).To(Equal("default/a=1"))
}

func TestReplacedSliceRemovesNoCluster(t *testing.T) {
	g := NewWithT(t)
	c := newHub(t)
	g.Expect(c.Create(profile("a", "1"), profile("b", "1"), decision("first", "x", "a"))).To(Succeed())
	sink := run(t, c, hub.Options{Namespaces: everywhere, Placement: &hub.Placement{Namespace: "default", DecisionKey: "x", Grace: aDay}})
	g.Eventually(sink.content).WithTimeout(timeout).Should(Equal("default/a=1"))

	g.Expect(c.Delete(decision("first", "x"))).To(Succeed())
	g.Expect(c.Create(decision("second", "x", "b"))).To(Succeed())
	g.Eventually(sink.content).WithTimeout(timeout).Should(Equal("default/a=1 default/b=1"),
		"the second slice follows the removal of the first one, which removes nothing yet")
}

func TestWaitForPlacementDecisionAPI(t *testing.T) {
	g := NewWithT(t)
	c := mctest.New(t)
	g.Expect(c.Create(crd("ClusterProfile"))).To(Succeed())
	logs := &logBuffer{}
	sink := run(t, c, hub.Options{Namespaces: everywhere, Placement: &hub.Placement{Namespace: "default", DecisionKey: "x"}}, logs)
	g.Eventually(logs.text).WithTimeout(timeout).Should(ContainSubstring("does not serve PlacementDecisions"))
	g.Expect(sink.synced()).To(BeFalse())

	g.Expect(c.Create(crd("PlacementDecision"))).To(Succeed())
	g.Eventually(sink.synced).WithTimeout(timeout).Should(BeTrue())
	g.Expect(logs.text()).To(And(
		ContainSubstring("No placement decision found, removing its clusters unless one appears"), ContainSubstring(`"removedAfter"="1m0s"`)))
}

// decision returns a slice of a decision on profiles in its namespace.
func decision(name, key string, clusters ...string) *v1alpha1.PlacementDecision {
	d := &v1alpha1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: name, Labels: map[string]string{v1alpha1.DecisionKeyLabel: key},
	}}
	for _, cluster := range clusters {
		d.Decisions = append(d.Decisions, v1alpha1.ClusterDecision{
			ClusterProfileRef: v1alpha1.ClusterProfileReference{Name: cluster},
		})
	}
	return d
}
