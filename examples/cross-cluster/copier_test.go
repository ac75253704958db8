// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/rollcall-dev/rollcall/pkg/mc/clusters"
	mcmanager "github.com/rollcall-dev/rollcall/pkg/mc/manager"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
)

// provider has the clusters that a test adds.
type provider struct {
	clusters.Clusters[cluster.Cluster]
}

func (p *provider) join(ctx context.Context, t *testing.T, mgr mcmanager.Manager, c *mctest.Cluster) {
	t.Helper()
	cl, err := cluster.New(c.Config())
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Add(ctx, multicluster.ClusterName(c.Name()), cl, mgr); err != nil {
		t.Fatal(err)
	}
}

// start runs the copier until the test ends. It copies from the fleet's first
// cluster. The last cluster joins when the test calls join.
func start(t *testing.T, fleet *mctest.Fleet) (join func()) {
	t.Helper()
	p := &provider{}
	mgr, err := mcmanager.New(mctest.New(t).Config(), p, mcmanager.Options{
		Metrics:    metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: new(true)}, // the tests use the same name
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := setup(mgr, multicluster.ClusterName(fleet.Cluster(0).Name())); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	last := fleet.Len() - 1
	for _, c := range fleet.Clusters()[:last] {
		p.join(ctx, t, mgr, c)
	}
	return func() { p.join(ctx, t, mgr, fleet.Cluster(last)) }
}

func shared(data string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "shared", Labels: map[string]string{labelShare: "true"}},
		Data:       map[string]string{"data": data},
	}
}

// copyIn returns the data of a cluster's copy, "" if there is none.
func copyIn(c *mctest.Cluster) func() string {
	return func() string {
		found := &corev1.ConfigMap{}
		if err := c.Get(client.ObjectKeyFromObject(shared("")), found); err != nil {
			return ""
		}
		return found.Data["data"]
	}
}

func TestCopies(t *testing.T) {
	g := NewWithT(t)
	g.SetDefaultEventuallyTimeout(20 * time.Second)
	fleet := mctest.NewFleet(t, 3)
	source, member, late := fleet.Cluster(0), fleet.Cluster(1), fleet.Cluster(2)
	join := start(t, fleet)

	g.Expect(source.Create(shared("one"))).To(Succeed())
	g.Eventually(copyIn(member)).Should(Equal("one"))
	g.Expect(source.Update(shared("two"))).To(Succeed())
	g.Eventually(copyIn(member)).Should(Equal("two"))

	join()
	g.Eventually(copyIn(late)).Should(Equal("two"), "a new cluster gets its copies")

	g.Expect(member.Delete(shared(""))).To(Succeed())
	g.Eventually(copyIn(member)).Should(Equal("two"), "a deleted copy is created again")

	g.Expect(source.Delete(shared(""))).To(Succeed())
	g.Eventually(copyIn(member)).Should(BeEmpty())
	g.Eventually(copyIn(late)).Should(BeEmpty())
}

func TestHangingCluster(t *testing.T) {
	g := NewWithT(t)
	g.SetDefaultEventuallyTimeout(20 * time.Second)
	fleet := mctest.NewFleet(t, 3)
	source, bad, good := fleet.Cluster(0), fleet.Cluster(1), fleet.Cluster(2)
	join := start(t, fleet)
	join()

	g.Expect(source.Create(shared("one"))).To(Succeed())
	g.Eventually(copyIn(bad)).Should(Equal("one"))
	g.Eventually(copyIn(good)).Should(Equal("one"))

	bad.Fault(mctest.Hang)
	for _, data := range []string{"two", "three"} { // during the second, a worker waits for the other cluster
		g.Expect(source.Update(shared(data))).To(Succeed())
		g.Eventually(copyIn(good)).Should(Equal(data))
	}

	bad.Clear()
	g.Eventually(copyIn(bad)).Should(Equal("three"))
}
