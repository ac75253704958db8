// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rollcall-dev/rollcall/pkg/mc/fleet"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
)

// byData is the function of the index "data.key" of ConfigMaps.
func byData(obj client.Object) []string { return []string{obj.(*corev1.ConfigMap).Data["key"]} }

func (env *testEnv) indexConfigMaps(t *testing.T) error {
	return env.IndexField(t.Context(), &corev1.ConfigMap{}, "data.key", byData)
}

// createIndexed creates a ConfigMap that the index "data.key" finds by "x", and
// another one.
func createIndexed(t *testing.T, c *mctest.Cluster) {
	t.Helper()
	found := configMap("a")
	found.Data = map[string]string{"key": "x"}
	if err := c.Create(found, configMap("b")); err != nil {
		t.Fatal(err)
	}
}

// find returns how many ConfigMaps the index finds in a cluster.
func (env *testEnv) find(t *testing.T, c *mctest.Cluster) (int, error) {
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	cl, err := env.Get(ctx, name(c))
	if err != nil {
		return 0, err
	}
	found := &corev1.ConfigMapList{}
	err = cl.GetClient().List(ctx, found, client.MatchingFields{"data.key": "x"})
	return len(found.Items), err
}

func TestIndexField(t *testing.T) {
	for _, tc := range []struct {
		name   string
		before func(g *WithT, env *testEnv, c *mctest.Cluster) // the index is added
	}{
		{"before the cluster is added", nil},
		{"when the cluster is engaged", func(g *WithT, env *testEnv, c *mctest.Cluster) {}},
		{"when the kind's informer has synced", func(g *WithT, env *testEnv, c *mctest.Cluster) {
			cl, err := env.Get(t.Context(), name(c))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(cl.GetClient().List(t.Context(), &corev1.ConfigMapList{})).To(Succeed())
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			c := mctest.New(t)
			createIndexed(t, c)
			env := start(t, []*mctest.Cluster{c})
			if tc.before == nil {
				g.Expect(env.indexConfigMaps(t)).To(Succeed())
			}
			env.source.put(profile(c.Name(), c.Config().Host))
			g.Eventually(env.state(name(c))).Should(Equal(fleet.Ready))
			if tc.before != nil {
				tc.before(g, env, c)
				g.Expect(env.indexConfigMaps(t)).To(Succeed())
			}
			g.Eventually(func() (int, error) { return env.find(t, c) }).Should(Equal(1))
		})
	}
}

// Clusters that forbid the kind, or do not respond, are used as far as it goes.
func TestIndexForbiddenKind(t *testing.T) {
	for _, added := range []string{"before start", "after start"} {
		t.Run(added, func(t *testing.T) {
			g := NewWithT(t)
			f := mctest.NewFleet(t, 2)
			env := start(t, f.Clusters())
			forbids, well := f.Cluster(0), f.Cluster(1)
			forbids.Fault(mctest.Forbidden.On("configmaps"))
			if added == "before start" {
				g.Expect(env.indexConfigMaps(t)).To(Succeed())
			}
			for _, c := range f.Clusters() {
				createIndexed(t, c)
				env.source.put(profile(c.Name(), c.Config().Host))
				g.Eventually(env.state(name(c))).Should(Equal(fleet.Ready))
			}
			if added == "after start" {
				g.Expect(env.indexConfigMaps(t)).To(Succeed())
			}
			g.Eventually(func() (int, error) { return env.find(t, well) }).Should(Equal(1))
			_, err := env.find(t, forbids)
			g.Expect(err).To(MatchError(ContainSubstring(`index "data.key" of *v1.ConfigMap is not there yet in cluster %q`, name(forbids))))
			cl, err := env.Get(t.Context(), name(forbids))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(cl.GetClient().List(t.Context(), &corev1.SecretList{})).To(Succeed(), "other kinds")

			forbids.Clear()
			g.Eventually(func() (int, error) { return env.find(t, forbids) }).Should(Equal(1))

			// The index does not keep the cluster from being engaged again.
			forbids.Fault(mctest.Forbidden.On("configmaps"))
			env.source.remove(forbids.Name())
			env.source.put(profile(forbids.Name(), forbids.Config().Host))
			g.Eventually(func() int { return len(env.aware.of(name(forbids))) }).Should(Equal(2))
			g.Eventually(env.state(name(forbids))).Should(Equal(fleet.Ready))
		})
	}
}

var widgetKind = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}

func widget() *unstructured.Unstructured {
	w := &unstructured.Unstructured{}
	w.SetGroupVersionKind(widgetKind)
	return w
}

func TestIndexMissingKind(t *testing.T) {
	g := NewWithT(t)
	c := mctest.New(t)
	env := start(t, []*mctest.Cluster{c})
	byName := func(obj client.Object) []string { return []string{obj.GetName()} }
	g.Expect(env.IndexField(t.Context(), widget(), "name", byName)).To(Succeed())
	env.source.put(profile(c.Name(), c.Config().Host))
	g.Eventually(env.state(name(c))).Should(Equal(fleet.Ready))
	cl, err := env.Get(t.Context(), name(c))
	g.Expect(err).NotTo(HaveOccurred())
	find := func() (int, error) {
		widgets := &unstructured.UnstructuredList{}
		widgets.SetGroupVersionKind(widgetKind)
		err := cl.GetCache().List(t.Context(), widgets, client.MatchingFields{"name": "a"})
		return len(widgets.Items), err
	}
	_, err = find()
	g.Expect(err).To(MatchError(ContainSubstring(`index "name" of *unstructured.Unstructured is not there yet in cluster %q: `, name(c))))
	g.Expect(meta.IsNoMatchError(err)).To(BeTrue(), err.Error())

	g.Expect(c.Create(widgetDefinition())).To(Succeed())
	for _, name := range []string{"a", "b"} {
		w := widget()
		w.SetNamespace("default")
		w.SetName(name)
		g.Expect(c.Create(w)).To(Succeed())
	}
	g.Eventually(find).Should(Equal(1))
	g.Expect(env.aware.of(name(c))).To(HaveLen(1))

	// An informer that is made again has the index again.
	g.Expect(cl.GetCache().RemoveInformer(t.Context(), widget())).To(Succeed())
	_, err = cl.GetCache().GetInformer(t.Context(), widget(), cache.BlockUntilSynced(true))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(find()).To(Equal(1))
}

func TestIndexFieldTwice(t *testing.T) {
	g := NewWithT(t)
	c := mctest.New(t)
	createIndexed(t, c)
	env := start(t, []*mctest.Cluster{c})
	g.Expect(env.indexConfigMaps(t)).To(Succeed())
	g.Expect(env.indexConfigMaps(t)).To(Succeed())
	other := func(client.Object) []string { return nil }
	g.Expect(env.IndexField(t.Context(), &corev1.ConfigMap{}, "data.key", other)).To(MatchError(ContainSubstring("already indexed by another function")))
	env.source.put(profile(c.Name(), c.Config().Host))
	g.Eventually(func() (int, error) { return env.find(t, c) }).Should(Equal(1))
}

// An index of one cluster, which a component adds when it is engaged with it.
func TestIndexOneCluster(t *testing.T) {
	g := NewWithT(t)
	c := mctest.New(t)
	createIndexed(t, c)
	env := start(t, []*mctest.Cluster{c})
	env.source.put(profile(c.Name(), c.Config().Host))
	g.Eventually(env.state(name(c))).Should(Equal(fleet.Ready))
	cl, err := env.Get(t.Context(), name(c))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(cl.GetFieldIndexer().IndexField(t.Context(), &corev1.ConfigMap{}, "data.key", byData)).To(Succeed())
	g.Expect(env.indexConfigMaps(t)).To(Succeed(), "the fleet's does not conflict")
	g.Eventually(func() (int, error) { return env.find(t, c) }).Should(Equal(1))
}
