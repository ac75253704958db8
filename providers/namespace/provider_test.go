// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package namespace_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rollcall-dev/rollcall/pkg/mc/fleet"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
	"github.com/rollcall-dev/rollcall/providers/namespace"
)

func TestLifecycle(t *testing.T) {
	g := NewWithT(t)
	server := mctest.New(t)
	g.Expect(server.Create(ns("a"), configMap("a", "x"))).To(Succeed())
	opts := quick()
	env := start(t, server, opts)
	g.Eventually(env.reconciled).Should(ConsistOf("a:cluster://a/a/x"))
	g.Eventually(env.ClusterNames).Should(ContainElements(multicluster.ClusterName("a"), multicluster.ClusterName("kube-system")))
	g.Expect(env.ReadyCheck(0)(nil)).To(Succeed())

	g.Expect(server.Create(ns("b"), configMap("b", "y"))).To(Succeed())
	g.Eventually(env.reconciled).Should(ConsistOf("a:cluster://a/a/x", "b:cluster://b/b/y"))
	g.Expect(server.OpenWatches("configmaps")).To(Equal(1), "one informer")
	g.Expect(server.OpenWatches("namespaces")).To(Equal(1))

	server.Fault(mctest.Unavailable)
	for _, name := range []multicluster.ClusterName{"a", "b"} {
		g.Eventually(env.state(name)).Should(Equal(fleet.Degraded))
	}
	server.Clear()
	for _, name := range []multicluster.ClusterName{"a", "b"} {
		g.Eventually(env.state(name)).Should(Equal(fleet.Ready))
	}

	g.Expect(server.Delete(configMap("b", "y"))).To(Succeed())
	g.Expect(server.Delete(ns("b"))).To(Succeed())
	g.Eventually(env.state("b")).Should(BeEmpty())
	_, err := env.mgr.GetCluster(t.Context(), "b")
	g.Expect(err).To(MatchError(multicluster.ErrClusterNotFound))
	g.Expect(server.Create(ns("b"), configMap("b", "z"))).To(Succeed())
	g.Eventually(env.reconciled).Should(ContainElement("b:cluster://b/b/z"))
	g.Eventually(env.state("b")).Should(Equal(fleet.Ready))
	env.stop()
	g.Expect(multicluster.IsTerminal(env.Start(t.Context(), nil))).To(BeTrue())
}

func TestTerminatingNamespace(t *testing.T) {
	g := NewWithT(t)
	server := mctest.New(t)
	terminating := ns("a")
	terminating.Finalizers = []string{"example.com/slow"}
	finalized := configMap("a", "x")
	finalized.Finalizers = terminating.Finalizers
	g.Expect(server.Create(terminating, finalized)).To(Succeed())
	env := start(t, server, quick())
	cl := env.engaged(g, "a")
	g.Eventually(env.reconciled).Should(HaveLen(1))
	g.Expect(server.Delete(ns("a"))).To(Succeed())
	g.Eventually(func() bool {
		found := &corev1.Namespace{}
		g.Expect(env.cluster.GetCache().Get(t.Context(), client.ObjectKey{Name: "a"}, found)).To(Succeed())
		return found.DeletionTimestamp != nil
	}).Should(BeTrue())
	// Its objects are deleted, and reconcilers remove their finalizers.
	g.Eventually(env.reconciled).Should(HaveLen(2))
	noFinalizers := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
	g.Expect(cl.GetClient().Patch(t.Context(), configMap("", "x"), noFinalizers)).To(Succeed())
	g.Eventually(env.reconciled).Should(HaveLen(3))
	g.Expect(env.state("a")()).To(Equal(fleet.Ready))
	g.Expect(server.Get(client.ObjectKey{Name: "a"}, terminating)).To(Succeed())
	terminating.Finalizers = nil
	g.Expect(server.Update(terminating)).To(Succeed())
	g.Eventually(env.state("a")).Should(BeEmpty())
}

func TestSelector(t *testing.T) {
	g := NewWithT(t)
	server := mctest.New(t)
	g.Expect(server.Create(ns("a", "tenant"), ns("b"))).To(Succeed())
	opts := quick()
	opts.Selector = labels.SelectorFromSet(labels.Set{"tenant": "true"})
	env := start(t, server, opts)
	g.Eventually(env.ClusterNames).Should(ConsistOf(multicluster.ClusterName("a")))
	cl := env.engaged(g, "a")
	g.Expect(server.Update(ns("b", "tenant"))).To(Succeed())
	g.Eventually(env.state("b")).Should(Equal(fleet.Ready))
	g.Expect(server.Update(ns("b"))).To(Succeed())
	g.Eventually(env.state("b")).Should(BeEmpty())
	g.Expect(server.Update(ns("a", "tenant", "other"))).To(Succeed())
	g.Eventually(func() map[string]string {
		profile, _ := fleet.ProfileFrom(cl)
		return profile.Labels
	}).Should(HaveKeyWithValue("other", "true"), "the cluster stays engaged")
	g.Expect(env.engaged(g, "a")).To(BeIdenticalTo(cl))
}

func TestForgedLabels(t *testing.T) {
	g := NewWithT(t)
	server := mctest.New(t)
	for _, name := range []string{"a", "b"} {
		one := ns(name)
		one.Labels["multicluster.x-k8s.io/inventory-member-id"] = "same"
		g.Expect(server.Create(one)).To(Succeed())
	}
	env := start(t, server, quick())
	env.engaged(g, "a")
	env.engaged(g, "b")
}

func TestIndexField(t *testing.T) {
	g := NewWithT(t)
	server := mctest.New(t)
	g.Expect(server.Create(ns("a"), ns("b"))).To(Succeed())
	for _, name := range []string{"a", "b"} {
		g.Expect(server.Create(configMap(name, "x"), configMap(name, "y"))).To(Succeed())
	}
	env := start(t, server, quick())
	byName := func(o client.Object) []string { return []string{o.GetName()} }
	g.Expect(env.mgr.GetFieldIndexer().IndexField(t.Context(), &corev1.ConfigMap{}, "name", byName)).To(Succeed())
	byData := func(o client.Object) []string { return []string{"x"} }
	for _, name := range []string{"a", "b"} {
		cl := env.engaged(g, multicluster.ClusterName(name))
		x := client.MatchingFields{"name": "x"}
		g.Expect(namesOf(g, cl.GetClient(), x)).To(ConsistOf(name + "/x"))
		g.Expect(namesOf(g, cl.GetCache(), x)).To(ConsistOf(name + "/x"))
		// An index of a cluster, with the same function in each.
		g.Expect(cl.GetFieldIndexer().IndexField(t.Context(), &corev1.ConfigMap{}, "all", byData)).To(Succeed())
		g.Expect(namesOf(g, cl.GetClient(), client.MatchingFields{"all": "x"})).To(ConsistOf(name+"/x", name+"/y"))
	}
	// Another function of one namespace must not use that of others.
	g.Expect(server.Create(ns("c"))).To(Succeed())
	cl := env.engaged(g, "c")
	g.Expect(cl.GetFieldIndexer().IndexField(t.Context(), &corev1.ConfigMap{}, "all", byName)).To(Succeed())
	for _, reader := range []client.Reader{cl.GetClient(), cl.GetCache()} {
		g.Expect(reader.List(t.Context(), &corev1.ConfigMapList{}, client.MatchingFields{"all": "x"})).
			To(MatchError(ContainSubstring("already indexed by another function")))
	}
}

func TestHangingCluster(t *testing.T) {
	g := NewWithT(t)
	server := mctest.New(t)
	g.Expect(server.Create(ns("a"), ns("b"))).To(Succeed())
	opts := quick()
	opts.Connection.Probe.Timeout = 50 * time.Millisecond
	env := start(t, server, opts)
	env.engaged(g, "a")
	env.engaged(g, "b")
	server.Fault(mctest.Hang)
	g.Eventually(env.state("a")).Should(Equal(fleet.Degraded))
	g.Eventually(env.state("b")).Should(Equal(fleet.Degraded))
	_, err := env.mgr.GetCluster(t.Context(), "a")
	g.Expect(err).NotTo(HaveOccurred(), "its cache can be read")
	server.Clear()
	env.engaged(g, "a")
	env.engaged(g, "b")
}

func TestHandlersOfRemovedNamespace(t *testing.T) {
	g := NewWithT(t)
	server := mctest.New(t)
	g.Expect(server.Create(ns("a"), configMap("a", "x"))).To(Succeed())
	env := start(t, server, quick())
	cl, seen := env.engaged(g, "a"), &events{}
	informer, err := cl.GetCache().GetInformer(t.Context(), &corev1.ConfigMap{})
	g.Expect(err).NotTo(HaveOccurred())
	_, err = informer.AddEventHandler(seen.handler()) // never removed by its owner
	g.Expect(err).NotTo(HaveOccurred())
	g.Eventually(seen.seen).Should(ConsistOf("add a/x"))
	g.Expect(server.Delete(ns("a"))).To(Succeed())
	g.Eventually(informer.IsStopped).Should(BeTrue())
	g.Eventually(env.state("a")).Should(BeEmpty())
	g.Expect(server.Create(ns("a"), configMap("a", "y"))).To(Succeed())
	g.Eventually(env.reconciled).Should(ContainElement("a:cluster://a/a/y"))
	g.Expect(seen.seen()).NotTo(ContainElement("add a/y"))
}

// TestRecreatedNamespace has a namespace whose deletion the informer does not see.
func TestRecreatedNamespace(t *testing.T) {
	g := NewWithT(t)
	server := mctest.New(t)
	g.Expect(server.Create(ns("a"))).To(Succeed())
	env := start(t, server, quick())
	env.engaged(g, "a")
	lift := server.Fault(mctest.Unavailable.On("namespaces").For("list", "watch"))
	server.CloseConnections()
	g.Expect(server.Delete(ns("a"))).To(Succeed())
	again := ns("a")
	g.Expect(server.Create(again)).To(Succeed())
	g.Expect(again.UID).NotTo(BeEmpty())
	server.Compact()
	lift()
	g.Eventually(func() []fleet.ClusterStatus { return env.Status() }).Should(ContainElement(And(
		HaveField("Name", multicluster.ClusterName("a")), HaveField("UID", string(again.UID)), HaveField("State", fleet.Ready))))
}

func TestRestart(t *testing.T) {
	g := NewWithT(t)
	server := mctest.New(t)
	g.Expect(server.Create(ns("a"), configMap("a", "x"))).To(Succeed())
	for range 2 {
		env := start(t, server, quick())
		g.Eventually(env.reconciled).Should(ConsistOf("a:cluster://a/a/x"))
		env.stop()
		g.Eventually(func() int { return server.OpenWatches("configmaps") }).Should(BeZero())
	}
}

func TestUnreadableNamespaces(t *testing.T) {
	g := NewWithT(t)
	server := mctest.New(t)
	g.Expect(server.Create(ns("a"))).To(Succeed())
	server.Fault(mctest.Forbidden.On("namespaces").For("list", "watch"))
	env := start(t, server, quick())
	g.Consistently(func() error { return env.ReadyCheck(0)(nil) }, 100*time.Millisecond).ShouldNot(Succeed())
	server.Clear()
	env.engaged(g, "a")
	server.Fault(mctest.Forbidden.On("namespaces").For("list", "watch"))
	server.CloseConnections()
	g.Consistently(env.state("a"), 100*time.Millisecond).Should(Equal(fleet.Ready), "an outage of the inventory removes nothing")
}

func TestInvalidArguments(t *testing.T) {
	g := NewWithT(t)
	p := namespace.New(nil)
	g.Expect(multicluster.IsTerminal(p.Start(t.Context(), nil))).To(BeTrue())
	_, err := p.Get(t.Context(), "a")
	g.Expect(err).To(MatchError(multicluster.ErrClusterNotFound))
	g.Expect(p.IndexField(t.Context(), nil, "", nil)).NotTo(Succeed())
	g.Expect(p.ReadyCheck(0)(nil)).NotTo(Succeed())
	g.Expect(p.Status()).To(BeEmpty())
}
