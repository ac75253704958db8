// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"fmt"
	"net/url"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/rollcall-dev/rollcall/pkg/mc/fleet"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
)

// requestSeries counts the series of rest_client_requests_total for the clusters.
func requestSeries(g *WithT, clusters ...*mctest.Cluster) (n int) {
	hosts := map[string]bool{}
	for _, c := range clusters {
		u, err := url.Parse(c.Config().Host)
		g.Expect(err).NotTo(HaveOccurred())
		hosts[u.Host] = true
	}
	families, err := ctrlmetrics.Registry.Gather()
	g.Expect(err).NotTo(HaveOccurred())
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			for _, label := range metric.GetLabel() {
				if family.GetName() == "rest_client_requests_total" && label.GetName() == "host" && hosts[label.GetValue()] {
					n++
				}
			}
		}
	}
	return n
}

func TestMetricsOfHostsAreRemoved(t *testing.T) {
	g := NewWithT(t)
	f := mctest.NewFleet(t, 20)
	hub := f.Cluster(0) // is a member too
	hubClient, err := client.New(hub.Config(), client.Options{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(hubClient.List(t.Context(), &corev1.ConfigMapList{})).To(Succeed())
	env := start(t, f.Clusters())
	for i, c := range f.Clusters() {
		env.source.put(profile(fmt.Sprint("c", i), c.Config().Host))
	}
	for i := range f.Clusters() {
		name := fmt.Sprint("c", i)
		g.Eventually(env.state(multicluster.ClusterName("fleet/" + name))).Should(Equal(fleet.Ready))
		g.Expect(names(t, g, env.aware.of(multicluster.ClusterName("fleet/" + name))[0].cluster)).To(BeEmpty())
	}
	g.Expect(requestSeries(g, f.Clusters()...)).To(BeNumerically(">=", 20))
	for i := range f.Clusters() {
		env.source.remove(fmt.Sprint("c", i))
	}
	g.Eventually(env.Status).Should(BeEmpty())
	g.Eventually(func() int { return requestSeries(g, f.Clusters()[1:]...) }).Should(BeZero())
	g.Expect(requestSeries(g, hub)).NotTo(BeZero())
}
