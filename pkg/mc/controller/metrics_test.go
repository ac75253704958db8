// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"

	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"

	mccontroller "github.com/rollcall-dev/rollcall/pkg/mc/controller"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
)

func TestMetricsOfOneCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		c := newController(t, &recorder{}, mccontroller.Options{})
		src := newFakeSource("a")
		src.unsynced("eu")
		g.Expect(c.MultiClusterWatch(src)).To(Succeed())
		g.Expect(series("rollcall_controller_clusters")).To(BeEmpty())
		start(t, c)
		ctx, leave := context.WithCancel(t.Context())
		g.Expect(c.Engage(ctx, "eu", &fakeCluster{})).To(Succeed())
		g.Expect(c.Engage(t.Context(), "us", &fakeCluster{})).To(Succeed())
		synctest.Wait()
		g.Expect(series("rollcall_controller_clusters")).To(ConsistOf("controller=test 2"))
		g.Expect(series("rollcall_controller_cluster_unsynced_sources")).To(ConsistOf("cluster=eu controller=test 1"))
		g.Expect(series("rollcall_controller_cluster_depth")).To(ConsistOf("cluster=eu controller=test 1"))

		leave()
		synctest.Wait()
		g.Expect(series("rollcall_controller_clusters")).To(ConsistOf("controller=test 1"))
		g.Expect(series("rollcall_controller_cluster_unsynced_sources")).To(BeEmpty())
		g.Expect(series("rollcall_controller_cluster_depth")).To(BeEmpty())
	})
}

func TestMetricsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		c := newController(t, &recorder{}, mccontroller.Options{})
		src := newFakeSource("a")
		g.Expect(c.MultiClusterWatch(src)).To(Succeed())
		start(t, c)
		for i := range 150 {
			name := multicluster.ClusterName(fmt.Sprintf("c%03d", i))
			src.unsynced(name)
			g.Expect(c.Engage(t.Context(), name, &fakeCluster{})).To(Succeed())
		}
		synctest.Wait()
		depth := series("rollcall_controller_cluster_depth")
		g.Expect(depth).To(HaveLen(101))
		g.Expect(depth).To(ContainElement("cluster=(other) controller=test 50"))
	})
}

func TestMetricsWithOddClusterNames(t *testing.T) {
	for _, tc := range []struct {
		name     string
		clusters []multicluster.ClusterName
		want     []string
	}{
		{
			name:     "names that are not UTF-8, with the same label",
			clusters: []multicluster.ClusterName{"eu", "a\xff", "a\xfe"},
			want:     []string{"cluster=eu controller=test 1", "cluster=a\uFFFD controller=test 2"},
		},
		{
			name:     "(other), with others left out",
			clusters: append(many(100), "(other)", "c100"),
			want:     append(manySeries(100), "cluster=(other) controller=test 2"),
		},
		{
			name:     "(other), with none left out",
			clusters: []multicluster.ClusterName{"(other)"},
			want:     []string{"cluster=(other) controller=test 1"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := NewWithT(t)
				c := newController(t, &recorder{}, mccontroller.Options{})
				src := newFakeSource("a")
				g.Expect(c.MultiClusterWatch(src)).To(Succeed())
				start(t, c)
				for _, name := range tc.clusters {
					src.unsynced(name)
					g.Expect(c.Engage(t.Context(), name, &fakeCluster{})).To(Succeed())
				}
				synctest.Wait()
				g.Expect(series("rollcall_controller_cluster_unsynced_sources")).To(ConsistOf(tc.want))
				g.Expect(series("rollcall_controller_cluster_depth")).To(ConsistOf(tc.want))
			})
		})
	}
}

func many(n int) []multicluster.ClusterName {
	names := make([]multicluster.ClusterName, n)
	for i := range names {
		names[i] = multicluster.ClusterName(fmt.Sprintf("c%03d", i))
	}
	return names
}

func manySeries(n int) []string {
	all := make([]string, n)
	for i, name := range many(n) {
		all[i] = fmt.Sprintf("cluster=%s controller=test 1", name)
	}
	return all
}

func TestMetricsOfControllersOfOneName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		for i := range 3 {
			c, src := newController(t, &recorder{}, mccontroller.Options{}), newFakeSource("a")
			src.unsynced("eu")
			g.Expect(c.MultiClusterWatch(src)).To(Succeed())
			start(t, c)
			g.Expect(c.Engage(t.Context(), "eu", &fakeCluster{})).To(Succeed())
			g.Expect(c.Engage(t.Context(), multicluster.ClusterName(fmt.Sprint(i)), &fakeCluster{})).To(Succeed())
		}
		synctest.Wait()
		g.Expect(series("rollcall_controller_clusters")).To(ConsistOf("controller=test 6"))
		g.Expect(series("rollcall_controller_parked_requests")).To(ConsistOf("controller=test 0"))
		g.Expect(series("rollcall_controller_cluster_unsynced_sources")).To(ConsistOf("cluster=eu controller=test 3"))
		g.Expect(series("rollcall_controller_cluster_depth")).To(ConsistOf("cluster=eu controller=test 3"))
	})
}

func TestMetricsDuringWarmup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		c, src := newController(t, &recorder{}, mccontroller.Options{EnableWarmup: ptr.To(true)}), newFakeSource("a")
		src.unsynced("eu")
		g.Expect(c.MultiClusterWatch(src)).To(Succeed())
		g.Expect(c.Engage(t.Context(), "eu", &fakeCluster{})).To(Succeed())
		g.Expect(series("rollcall_controller_clusters")).To(BeEmpty())

		ctx, cancel := context.WithCancel(t.Context())
		g.Expect(c.(interface{ Warmup(context.Context) error }).Warmup(ctx)).To(Succeed())
		synctest.Wait()
		g.Expect(series("rollcall_controller_clusters")).To(ConsistOf("controller=test 1"))
		g.Expect(series("rollcall_controller_cluster_unsynced_sources")).To(ConsistOf("cluster=eu controller=test 1"))

		cancel() // without having been elected
		synctest.Wait()
		g.Expect(series("rollcall_controller_clusters")).To(BeEmpty())
	})
}

func TestStatusBeforeStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		c := newController(t, &recorder{}, mccontroller.Options{})
		g.Expect(c.MultiClusterWatch(newFakeSource("a"))).To(Succeed())
		g.Expect(c.Engage(t.Context(), "eu", &fakeCluster{})).To(Succeed())
		g.Expect(c.MultiClusterWatch(newFakeSource("b"))).To(Succeed())
		g.Expect(statusOf(c, "eu")).To(Equal(mccontroller.ClusterStatus{ClusterName: "eu", UnsyncedSources: 2}))
		start(t, c)
		synctest.Wait()
		g.Expect(statusOf(c, "eu")).To(Equal(mccontroller.ClusterStatus{ClusterName: "eu"}))
	})
}
