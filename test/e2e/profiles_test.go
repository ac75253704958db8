// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"github.com/rollcall-dev/rollcall/pkg/inventory"
	"github.com/rollcall-dev/rollcall/pkg/inventory/hub"
	"github.com/rollcall-dev/rollcall/pkg/mc/fleet"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
	"github.com/rollcall-dev/rollcall/test/internal/inmemory"
)

func TestFlappingProfile(t *testing.T) {
	for _, tc := range []struct {
		name string
		flap func(p *inventory.Profile, i int)
	}{
		{"labels change", func(p *inventory.Profile, i int) { p.Labels = map[string]string{"beat": fmt.Sprint(i)} }},
		{"two endpoints of one cluster", func(p *inventory.Profile, i int) {
			p.Status.AccessProviders[0].Cluster.Server = []string{"bad", "bad/"}[i%2]
		}},
		{"two clusters", func(p *inventory.Profile, i int) {
			p.Status.AccessProviders[0].Cluster.Server = []string{"bad", "another"}[i%2]
		}},
		{"a cluster and an unknown endpoint", func(p *inventory.Profile, i int) {
			p.Status.AccessProviders[0].Cluster.Server = []string{"bad", "none"}[i%2]
		}},
		{"a cluster and one that hangs", func(p *inventory.Profile, i int) {
			p.Status.AccessProviders[0].Cluster.Server = []string{"bad", "hangs"}[i%2]
		}},
		{"the profile is recreated", func(p *inventory.Profile, i int) { p.UID = types.UID(fmt.Sprint(i)) }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			f := mctest.NewFleet(t, 4)
			flaps, another, hangs, good := f.Cluster(0), f.Cluster(1), f.Cluster(2), f.Cluster(3)
			hangs.Fault(mctest.Hang)
			e := newEnv(t)
			e.Add(good)
			second := flaps.Config()
			second.Host += "/"
			e.Connect("bad/", second)
			e.Connect("bad", flaps.Config())
			e.Connect("another", another.Config())
			e.Connect("hangs", hangs.Config())
			e.checkReconciles(good)

			tick := time.NewTicker(10 * time.Millisecond)
			defer tick.Stop()
			for i := range 201 { // the last one is good
				p := inmemory.Profile(flaps.Name(), "bad")
				tc.flap(p, i)
				e.Put(p)
				<-tick.C
				if i%50 == 0 {
					e.checkReconciles(good)
				}
			}
			e.awaitReady(flaps)
			e.checkReconciles(flaps, good)
			e.checkUndisturbed(good)
			e.stopAndCheck(f.Clusters()...)
		})
	}
}

func TestProfileDeletedWhileConnecting(t *testing.T) {
	f := mctest.NewFleet(t, 2)
	hangs, good := f.Cluster(0), f.Cluster(1)
	hangs.Fault(mctest.Hang)
	e := newEnv(t, func(o *fleet.Options) { o.Connection.ConnectTimeout = time.Hour })
	e.Add(hangs, good)
	e.awaitState(hangs, fleet.Connecting, "")
	NewWithT(t).Eventually(hangs.Connections).Should(Equal(1))
	e.Remove(hangs)
	NewWithT(t).Eventually(hangs.Connections).Should(BeZero())
	e.awaitState(hangs, "", "")
	e.checkReconciles(good)
	e.stopAndCheck(f.Clusters()...)
}

func TestProfileRecreated(t *testing.T) {
	f := mctest.NewFleet(t, 2)
	c, good := f.Cluster(0), f.Cluster(1)
	e := newEnv(t)
	e.Add(c, good)
	e.checkReconciles(c, good)
	again := inmemory.ProfileOf(c)
	again.UID = "another"
	e.Put(again)
	e.checkReconciles(c, good)
	NewWithT(t).Expect(e.engagements(c)).To(Equal(1), "it is the same cluster")
	e.Remove(c)
	e.Put(again)
	NewWithT(t).Eventually(func() int { return e.engagements(c) }).Should(Equal(2))
	e.awaitReady(c)
	e.checkReconciles(c, good)
	e.checkUndisturbed(good)
	e.stopAndCheck(f.Clusters()...)
}

func TestDuplicateClusterName(t *testing.T) {
	g := NewWithT(t)
	f := mctest.NewFleet(t, 2)
	c, good := f.Cluster(0), f.Cluster(1)
	second := inmemory.New()
	e := newEnv(t, func(o *fleet.Options) { o.Source = inventory.Merge(o.Source, second) })
	e.Add(c, good)
	e.awaitReady(c)
	again := inmemory.ProfileOf(c)
	again.Namespace = "elsewhere"
	second.Put(again)
	e.checkReconciles(c, good)
	g.Expect(e.engagements(c)).To(Equal(1), "the second profile is ignored")
	g.Expect(e.status(c).Profile.Namespace).To(Equal("fleet"))

	e.Remove(c)
	g.Eventually(func() string { return e.status(c).Profile.Namespace }).Should(Equal("elsewhere"), "the second profile takes over")
	e.awaitReady(c)
	e.checkReconciles(c, good)
	e.checkUndisturbed(good)
	e.stopAndCheck(f.Clusters()...)
}

func TestHubOutage(t *testing.T) {
	g := NewWithT(t)
	scheme := runtime.NewScheme()
	g.Expect(v1alpha1.AddToScheme(scheme)).To(Succeed())
	home := mctest.New(t, mctest.Options{Scheme: scheme})
	f := mctest.NewFleet(t, 3)
	var profiles []*inventory.Profile
	for _, c := range f.Clusters() {
		p := inmemory.ProfileOf(c)
		p.Namespace, p.UID = "default", ""
		p.Spec.ClusterManager.Name = "test"
		g.Expect(home.Create(p)).To(Succeed())
		p.Status.AccessProviders = inmemory.ProfileOf(c).Status.AccessProviders
		g.Expect(home.UpdateStatus(p)).To(Succeed())
		profiles = append(profiles, p)
	}
	source, err := hub.New(home.Config(), hub.Options{Namespaces: []string{metav1.NamespaceAll}, TrustAnnotations: true})
	g.Expect(err).NotTo(HaveOccurred())
	e := newEnv(t, func(o *fleet.Options) { o.Source = source })
	for _, c := range f.Clusters() {
		e.Connect(c.Name(), c.Config())
	}
	e.awaitReady(f.Clusters()...)
	e.checkReconciles(f.Clusters()...)

	home.Fault(mctest.Refuse)
	g.Expect(home.Delete(profiles[0])).To(Succeed())
	home.Compact()
	e.checkReconciles(f.Clusters()...)
	g.Consistently(func() int { return len(e.fleet.ClusterNames()) }, "500ms").Should(Equal(3))
	e.checkReconciles(f.Clusters()...)

	home.Clear()
	e.awaitState(f.Cluster(0), "", "")
	e.checkReconciles(f.Clusters()[1:]...)
	e.checkUndisturbed(f.Clusters()[1:]...)
	e.stopAndCheck(append(f.Clusters(), home)...)
}
