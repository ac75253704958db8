// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rollcall-dev/rollcall/pkg/mc/fleet"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
)

func TestIndexesReachTheClustersThereAndThoseToCome(t *testing.T) {
	g := NewWithT(t)
	f := mctest.NewFleet(t, 2)
	w := start(t, f.Clusters())
	byData := func(obj client.Object) []string { return []string{obj.(*corev1.ConfigMap).Data["key"]} }
	find := func(name multicluster.ClusterName) func() ([]corev1.ConfigMap, error) {
		return func() ([]corev1.ConfigMap, error) {
			cl, err := w.Get(t.Context(), name)
			if err != nil {
				return nil, err
			}
			found := &corev1.ConfigMapList{}
			err = cl.GetClient().List(t.Context(), found, client.MatchingFields{"data.key": "x"})
			return found.Items, err
		}
	}
	for _, c := range f.Clusters() {
		cm := configMap("a")
		cm.Data = map[string]string{"key": "x"}
		g.Expect(c.Create(cm, configMap("b"))).To(Succeed())
	}

	w.list.put(profile("a", f.Cluster(0).Config().Host))
	g.Eventually(w.state("fleet/a")).WithTimeout(patience).Should(Equal(fleet.Ready))
	g.Expect(w.IndexField(t.Context(), &corev1.ConfigMap{}, "data.key", byData)).To(Succeed())
	w.list.put(profile("b", f.Cluster(1).Config().Host))
	g.Eventually(find("fleet/a")).WithTimeout(patience).Should(HaveLen(1))
	g.Eventually(find("fleet/b")).WithTimeout(patience).Should(HaveLen(1))
}

// No cache could have both, and so no cluster could be connected any more.
func TestAFieldIsIndexedOnce(t *testing.T) {
	g := NewWithT(t)
	c := mctest.New(t)
	w := start(t, []*mctest.Cluster{c})
	none := func(client.Object) []string { return nil }
	g.Expect(w.IndexField(t.Context(), &corev1.ConfigMap{}, "data.key", none)).To(Succeed())
	g.Expect(w.IndexField(t.Context(), &corev1.ConfigMap{}, "data.key", none)).To(MatchError(ContainSubstring("indexed already")))
	w.list.put(profile("eu", c.Config().Host))
	g.Eventually(w.state("fleet/eu")).WithTimeout(patience).Should(Equal(fleet.Ready))
}

func TestAClusterThatLeavesWhileItIsIndexedIsNoFailure(t *testing.T) {
	g := NewWithT(t)
	c := mctest.New(t)
	w := start(t, []*mctest.Cluster{c})
	w.list.put(profile("eu", c.Config().Host))
	g.Eventually(w.state("fleet/eu")).WithTimeout(patience).Should(Equal(fleet.Ready))
	c.Fault(mctest.Hang)
	before := c.Requests("", "")
	indexed := make(chan error, 1)
	go func() {
		indexed <- w.IndexField(t.Context(), &corev1.ConfigMap{}, "data.key", func(client.Object) []string { return nil })
	}()
	g.Eventually(func() int { return c.Requests("", "") }).WithTimeout(patience).Should(BeNumerically(">", before))
	w.list.remove("eu")
	g.Eventually(indexed).WithTimeout(patience).Should(Receive(BeNil()))
}
