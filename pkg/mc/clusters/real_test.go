// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package clusters_test

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/rollcall-dev/rollcall/pkg/mc/clusters"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
)

// The clusters are controller-runtime's, with in-process API servers.
func TestRealClusters(t *testing.T) {
	g := NewWithT(t)
	servers := mctest.NewFleet(t, 2)
	for _, server := range servers.Clusters() {
		g.Expect(server.Create(&corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"},
			Data:       map[string]string{"server": server.Name()},
		})).To(Succeed())
	}
	c := clusters.New[cluster.Cluster]()
	ctx, end := context.WithCancel(t.Context())
	defer end()
	newCluster := func(i int) cluster.Cluster {
		cl, err := cluster.New(servers.Cluster(i).Config())
		g.Expect(err).NotTo(HaveOccurred())
		return cl
	}
	found := func(name multicluster.ClusterName, field, value string) []corev1.ConfigMap {
		cl, err := c.Get(ctx, name)
		g.Expect(err).NotTo(HaveOccurred())
		list := &corev1.ConfigMapList{}
		g.Expect(cl.GetClient().List(ctx, list, client.MatchingFields{field: value})).To(Succeed())
		return list.Items
	}
	extract := func(obj client.Object) []string { return []string{obj.(*corev1.ConfigMap).Data["server"]} }

	g.Expect(c.IndexField(ctx, &corev1.ConfigMap{}, "early", extract)).To(Succeed())
	engagements := &engagements{}
	g.Expect(c.Add(ctx, "eu", newCluster(0), engagements)).To(Succeed())
	g.Expect(c.IndexField(ctx, &corev1.ConfigMap{}, "late", extract)).To(Succeed())
	g.Expect(found("eu", "early", "cluster-0")).To(HaveLen(1))
	g.Expect(found("eu", "late", "cluster-0")).To(HaveLen(1))
	g.Expect(found("eu", "late", "cluster-1")).To(BeEmpty())

	first, _ := c.Get(ctx, "eu")
	g.Expect(c.AddOrReplace(ctx, "eu", newCluster(0), engagements)).To(Succeed())
	g.Expect(c.Get(ctx, "eu")).To(BeIdenticalTo(first), "its config is equal")
	g.Expect(c.AddOrReplace(ctx, "eu", newCluster(1), engagements)).To(Succeed())
	g.Expect(found("eu", "early", "cluster-1")).To(HaveLen(1))
	g.Expect(engagements.live()).To(HaveLen(1))
	g.Eventually(func() int { return servers.Cluster(0).OpenWatches("configmaps") }).Should(BeZero())

	c.Remove("eu")
	g.Eventually(func() int { return servers.Cluster(1).OpenWatches("configmaps") }).Should(BeZero())
}

func TestServerHangs(t *testing.T) {
	g := NewWithT(t)
	servers := mctest.NewFleet(t, 2)
	all := make([]cluster.Cluster, servers.Len())
	for i := range all {
		var err error
		all[i], err = cluster.New(servers.Cluster(i).Config())
		g.Expect(err).NotTo(HaveOccurred())
	}
	c := clusters.New[cluster.Cluster]()
	c.WaitCacheTimeout = 500 * time.Millisecond
	ctx, end := context.WithCancel(t.Context())
	defer end()
	g.Expect(c.IndexField(ctx, &corev1.Pod{}, "node", func(client.Object) []string { return nil })).To(Succeed())

	servers.Cluster(0).Fault(mctest.Hang)
	hanging := make(chan error, 1)
	go func() { hanging <- c.Add(ctx, "hanging", all[0], nil) }()
	g.Expect(c.Add(ctx, "answering", all[1], nil)).To(Succeed())
	g.Expect(<-hanging).To(MatchError(context.DeadlineExceeded))
	g.Expect(c.ClusterNames()).To(HaveExactElements(multicluster.ClusterName("answering")))

	// Discovery ignores contexts: let it end.
	servers.Cluster(0).Clear()
	_, err := all[0].GetRESTMapper().RESTMapping(schema.GroupKind{Kind: "Pod"})
	g.Expect(err).NotTo(HaveOccurred())
}
