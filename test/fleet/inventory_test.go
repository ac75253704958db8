// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"github.com/rollcall-dev/rollcall/pkg/inventory"
	"github.com/rollcall-dev/rollcall/pkg/inventory/hub"
	"github.com/rollcall-dev/rollcall/pkg/mc/fleet"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
)

func TestAProfileThatFlapsAHundredTimesASecond(t *testing.T) {
	for _, tc := range []struct {
		name string
		flap func(p *inventory.Profile, i int)
	}{
		{"in what does not matter", func(p *inventory.Profile, i int) { p.Labels = map[string]string{"beat": fmt.Sprint(i)} }},
		{"between two ways to the cluster", func(p *inventory.Profile, i int) {
			p.Status.AccessProviders[0].Cluster.Server = []string{"bad", "bad, otherwise"}[i%2]
		}},
		{"between two clusters", func(p *inventory.Profile, i int) {
			p.Status.AccessProviders[0].Cluster.Server = []string{"bad", "another"}[i%2]
		}},
		{"between a cluster and none", func(p *inventory.Profile, i int) {
			p.Status.AccessProviders[0].Cluster.Server = []string{"bad", "none"}[i%2]
		}},
		{"between a cluster and one that hangs", func(p *inventory.Profile, i int) {
			p.Status.AccessProviders[0].Cluster.Server = []string{"bad", "hangs"}[i%2]
		}},
		{"as it is deleted and created anew", func(p *inventory.Profile, i int) { p.UID = types.UID(fmt.Sprint(i)) }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			f := mctest.NewFleet(t, 4)
			flaps, another, hangs, good := f.Cluster(0), f.Cluster(1), f.Cluster(2), f.Cluster(3)
			hangs.Fault(mctest.Hang)
			s := newStage(t)
			s.join(good)
			otherwise := flaps.Config()
			otherwise.Host += "/"
			s.lead("bad, otherwise", otherwise)
			s.lead("bad", flaps.Config())
			s.lead("another", another.Config())
			s.lead("hangs", hangs.Config())
			s.beat(good)

			tick := time.NewTicker(10 * time.Millisecond)
			defer tick.Stop()
			for i := range 201 { // ends with one that is good
				p := profileTo(flaps.Name(), "bad")
				tc.flap(p, i)
				s.put(p)
				<-tick.C
				if i%50 == 0 {
					s.beat(good)
				}
			}
			s.awaitReady(flaps)
			s.beat(flaps, good)
			s.goodUntouched([]*mctest.Cluster{good})
			s.nothingIsLeft(f.Clusters()...)
		})
	}
}

func TestAProfileIsDeletedWhileItsClusterIsConnected(t *testing.T) {
	f := mctest.NewFleet(t, 2)
	hangs, good := f.Cluster(0), f.Cluster(1)
	hangs.Fault(mctest.Hang)
	s := newStage(t, func(o *fleet.Options) { o.Connection.ConnectTimeout = time.Hour })
	s.join(hangs, good)
	s.awaitState(hangs, fleet.Connecting, "")
	NewWithT(t).Eventually(hangs.Connections).WithTimeout(patience).Should(Equal(1))
	s.leave(hangs)
	NewWithT(t).Eventually(hangs.Connections).WithTimeout(patience).Should(BeZero())
	s.awaitState(hangs, "", "")
	s.beat(good)
	s.nothingIsLeft(f.Clusters()...)
}

func TestAProfileIsCreatedAnewUnderTheSameName(t *testing.T) {
	f := mctest.NewFleet(t, 2)
	c, good := f.Cluster(0), f.Cluster(1)
	s := newStage(t)
	s.join(c, good)
	s.beat(c, good)
	again := profileOf(c)
	again.UID = "another"
	s.put(again)
	s.beat(c, good)
	NewWithT(t).Expect(s.engagements(c)).To(Equal(1), "it leads to the same cluster")
	s.leave(c)
	s.put(again)
	NewWithT(t).Eventually(func() int { return s.engagements(c) }).WithTimeout(patience).Should(Equal(2))
	s.awaitReady(c)
	s.beat(c, good)
	s.goodUntouched([]*mctest.Cluster{good})
	s.nothingIsLeft(f.Clusters()...)
}

func TestTwoSourcesNameTheSameCluster(t *testing.T) {
	g := NewWithT(t)
	f := mctest.NewFleet(t, 2)
	c, good := f.Cluster(0), f.Cluster(1)
	second := newRoll()
	s := newStage(t, func(o *fleet.Options) { o.Source = inventory.Merge(o.Source, second) })
	s.join(c, good)
	s.awaitReady(c)
	again := profileOf(c)
	again.Namespace = "elsewhere"
	second.put(again)
	s.beat(c, good)
	g.Expect(s.engagements(c)).To(Equal(1), "one is enough")
	g.Expect(s.status(c).Profile.Namespace).To(Equal("fleet"))

	s.leave(c)
	g.Eventually(func() string { return s.status(c).Profile.Namespace }).WithTimeout(patience).Should(Equal("elsewhere"), "the other one takes over")
	s.awaitReady(c)
	s.beat(c, good)
	s.goodUntouched([]*mctest.Cluster{good})
	s.nothingIsLeft(f.Clusters()...)
}

func TestTheHubIsGone(t *testing.T) {
	g := NewWithT(t)
	scheme := runtime.NewScheme()
	g.Expect(v1alpha1.AddToScheme(scheme)).To(Succeed())
	home := mctest.New(t, mctest.Options{Scheme: scheme})
	f := mctest.NewFleet(t, 3)
	var profiles []*inventory.Profile
	for _, c := range f.Clusters() {
		p := profileOf(c)
		p.Namespace, p.UID = "default", ""
		p.Spec.ClusterManager.Name = "test"
		g.Expect(home.Create(p)).To(Succeed())
		p.Status.AccessProviders = profileOf(c).Status.AccessProviders
		g.Expect(home.UpdateStatus(p)).To(Succeed())
		profiles = append(profiles, p)
	}
	source, err := hub.New(home.Config(), hub.Options{TrustAnnotations: true})
	g.Expect(err).NotTo(HaveOccurred())
	s := newStage(t, func(o *fleet.Options) { o.Source = source })
	for _, c := range f.Clusters() {
		s.lead(c.Name(), c.Config())
	}
	s.awaitReady(f.Clusters()...)
	s.beat(f.Clusters()...)

	home.Fault(mctest.Refuse)
	g.Expect(home.Delete(profiles[0])).To(Succeed())
	home.Compact()
	s.beat(f.Clusters()...)
	g.Consistently(func() int { return len(s.ClusterNames()) }, "500ms").Should(Equal(3))
	s.beat(f.Clusters()...)

	home.Clear()
	s.awaitState(f.Cluster(0), "", "")
	s.beat(f.Clusters()[1:]...)
	s.goodUntouched(f.Clusters()[1:])
	s.nothingIsLeft(append(f.Clusters(), home)...)
}
