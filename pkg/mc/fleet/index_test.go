// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"context"
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rollcall-dev/rollcall/pkg/mc/fleet"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
)

func TestIndexField(t *testing.T) {
	g := NewWithT(t)
	f := mctest.NewFleet(t, 2)
	env := start(t, f.Clusters())
	byData := func(obj client.Object) []string { return []string{obj.(*corev1.ConfigMap).Data["key"]} }
	find := func(name multicluster.ClusterName) func() ([]corev1.ConfigMap, error) {
		return func() ([]corev1.ConfigMap, error) {
			cl, err := env.Get(t.Context(), name)
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

	env.source.put(profile("a", f.Cluster(0).Config().Host))
	g.Eventually(env.state("fleet/a")).Should(Equal(fleet.Ready))
	g.Expect(env.IndexField(t.Context(), &corev1.ConfigMap{}, "data.key", byData)).To(Succeed())
	env.source.put(profile("b", f.Cluster(1).Config().Host))
	g.Eventually(find("fleet/a")).Should(HaveLen(1))
	g.Eventually(find("fleet/b")).Should(HaveLen(1))
}

// A cache cannot have both, so no cluster could be connected.
func TestIndexFieldTwice(t *testing.T) {
	g := NewWithT(t)
	c := mctest.New(t)
	env := start(t, []*mctest.Cluster{c})
	none := func(client.Object) []string { return nil }
	g.Expect(env.IndexField(t.Context(), &corev1.ConfigMap{}, "data.key", none)).To(Succeed())
	g.Expect(env.IndexField(t.Context(), &corev1.ConfigMap{}, "data.key", none)).To(MatchError(ContainSubstring("already indexed")))
	env.source.put(profile("eu", c.Config().Host))
	g.Eventually(env.state("fleet/eu")).Should(Equal(fleet.Ready))
}

func TestIndexFieldDuringDisengage(t *testing.T) {
	g := NewWithT(t)
	c := mctest.New(t)
	env := start(t, []*mctest.Cluster{c})
	env.source.put(profile("eu", c.Config().Host))
	g.Eventually(env.state("fleet/eu")).Should(Equal(fleet.Ready))
	c.Fault(mctest.Hang)
	before := c.Requests("", "")
	indexed := make(chan error, 1)
	go func() {
		indexed <- env.IndexField(t.Context(), &corev1.ConfigMap{}, "data.key", func(client.Object) []string { return nil })
	}()
	g.Eventually(func() int { return c.Requests("", "") }).Should(BeNumerically(">", before))
	env.source.remove("eu")
	g.Eventually(indexed).Should(Receive(BeNil()))
}

func TestIndexFieldIsRetried(t *testing.T) {
	g := NewWithT(t)
	f := mctest.NewFleet(t, 3)
	env := start(t, f.Clusters(), func(o *fleet.Options) { o.Connection.ConnectTimeout, o.Connection.Probe.Interval = time.Second, -1 })
	for _, c := range f.Clusters() {
		cm := configMap("a")
		cm.Data = map[string]string{"key": "x"}
		g.Expect(c.Create(cm, configMap("b"))).To(Succeed())
		env.source.put(profile(c.Name(), c.Config().Host))
		g.Eventually(env.state(name(c))).Should(Equal(fleet.Ready))
	}
	hangs, broken, well := f.Cluster(0), f.Cluster(1), f.Cluster(2)
	hangs.Fault(mctest.Hang)
	broken.Fault(mctest.Unavailable)
	indexed := make(chan error, 1)
	go func() {
		indexed <- env.IndexField(t.Context(), &corev1.ConfigMap{}, "data.key", func(obj client.Object) []string {
			return []string{obj.(*corev1.ConfigMap).Data["key"]}
		})
	}()
	find := func(c *mctest.Cluster) func() (int, error) {
		return func() (int, error) {
			cl, err := env.Get(t.Context(), name(c))
			if err != nil {
				return 0, err
			}
			found := &corev1.ConfigMapList{}
			err = cl.GetClient().List(t.Context(), found, client.MatchingFields{"data.key": "x"})
			return len(found.Items), err
		}
	}
	g.Eventually(find(well)).Should(Equal(1))
	var err error
	g.Eventually(indexed).Should(Receive(&err))
	g.Expect(err).To(MatchError(And(
		ContainSubstring(`cannot index field "data.key" of *v1.ConfigMap in cluster %q: no response within 1s; retrying`, name(hangs)),
		ContainSubstring(`in cluster %q`, name(broken)), Not(ContainSubstring(name(well).String())))))
	g.Expect(err).To(MatchError(context.DeadlineExceeded))

	hangs.Clear()
	broken.Clear()
	for _, c := range []*mctest.Cluster{hangs, broken} {
		g.Eventually(find(c)).Should(Equal(1), c.Name())
		g.Expect(env.aware.of(name(c))).To(HaveLen(1))
	}
	hangs.Rebuild()
	cm := configMap("a")
	cm.Data = map[string]string{"key": "x"}
	g.Expect(hangs.Create(cm)).To(Succeed())
	env.credentials.set(hangs.Config().Host, hangs.Config())
	env.source.remove(hangs.Name())
	env.source.put(profile(hangs.Name(), hangs.Config().Host))
	g.Eventually(find(hangs)).Should(Equal(1), "after re-engaging")
}

func TestIndexFieldContext(t *testing.T) {
	g := NewWithT(t)
	c := mctest.New(t)
	env := start(t, []*mctest.Cluster{c}, func(o *fleet.Options) { o.Connection.ConnectTimeout = time.Hour })
	env.source.put(profile("eu", c.Config().Host))
	g.Eventually(env.state("fleet/eu")).Should(Equal(fleet.Ready))
	c.Fault(mctest.Hang)
	ctx, cancel := context.WithCancelCause(t.Context())
	indexed := make(chan error, 1)
	go func() {
		indexed <- env.IndexField(ctx, &corev1.ConfigMap{}, "data.key", func(client.Object) []string { return nil })
	}()
	enough := errors.New("enough")
	cancel(enough)
	g.Eventually(indexed).Should(Receive(MatchError(enough)))
}
