// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/rollcall-dev/rollcall/pkg/inventory"
	"github.com/rollcall-dev/rollcall/pkg/mc/fleet"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
)

// secondAddress makes another address lead to the cluster, too.
func (w *world) secondAddress(c *mctest.Cluster) string {
	config := c.Config()
	config.Host += "/"
	w.method.add(config)
	return config.Host
}

// labelled returns the profile with a label that has the value.
func labelled(p *inventory.Profile, value string) *inventory.Profile {
	p = p.DeepCopy()
	p.Labels = map[string]string{"beat": value}
	return p
}

// beat returns the label of the cluster's current profile.
func beat(cl cluster.Cluster) func() string {
	return func() string {
		current, _ := fleet.ProfileFrom(cl)
		return current.Labels["beat"]
	}
}

func TestANewAccessThatHangsHoldsNothingUp(t *testing.T) {
	g := NewWithT(t)
	f := mctest.NewFleet(t, 2)
	w := start(t, f.Clusters(), quickProbes, func(o *fleet.Options) { o.Connection.ConnectTimeout = time.Hour })
	w.list.put(profile("eu", f.Cluster(0).Config().Host))
	g.Eventually(w.state("fleet/eu")).WithTimeout(patience).Should(Equal(fleet.Ready))
	cl := w.engagements.of("fleet/eu")[0].cluster

	f.Cluster(1).Fault(mctest.Hang)
	p := profile("eu", f.Cluster(1).Config().Host)
	w.list.put(p)
	g.Eventually(f.Cluster(1).Connections).WithTimeout(patience).Should(Equal(1), "the new access is tried")
	w.list.put(labelled(p, "meanwhile"))
	g.Eventually(beat(cl)).WithTimeout(patience).Should(Equal("meanwhile"))
	f.Cluster(0).Fault(mctest.Unavailable)
	g.Eventually(w.state("fleet/eu")).WithTimeout(patience).Should(Equal(fleet.Degraded))
	f.Cluster(0).Clear()
	g.Eventually(w.state("fleet/eu")).WithTimeout(patience).Should(Equal(fleet.Ready))
}

func TestHeartbeatsDoNotEndTheWaitForTheNextTryOfANewAccess(t *testing.T) {
	g := NewWithT(t)
	c := mctest.New(t)
	w := start(t, []*mctest.Cluster{c}, func(o *fleet.Options) { o.Connection.MinBackoff, o.Connection.MaxBackoff = time.Hour, time.Hour })
	w.list.put(profile("eu", c.Config().Host))
	g.Eventually(w.state("fleet/eu")).WithTimeout(patience).Should(Equal(fleet.Ready))
	cl := w.engagements.of("fleet/eu")[0].cluster

	p := profile("eu", "https://nowhere")
	w.list.put(p)
	g.Eventually(func() string { return w.status("fleet/eu").LastError }).WithTimeout(patience).Should(ContainSubstring("no credentials"))
	resolved := w.method.count()
	for i := range 50 {
		w.list.put(labelled(p, fmt.Sprint(i)))
		g.Eventually(beat(cl)).WithTimeout(patience).Should(Equal(fmt.Sprint(i)))
	}
	g.Expect(w.method.count()).To(Equal(resolved))
	g.Expect(w.status("fleet/eu").LastError).To(ContainSubstring("no credentials"))
}

func TestTheLastOfManyChangesIsFollowed(t *testing.T) {
	g := NewWithT(t)
	c := mctest.New(t)
	w := start(t, []*mctest.Cluster{c})
	addresses := []string{c.Config().Host, w.secondAddress(c), "https://nowhere"}
	w.list.put(profile("eu", addresses[0]))
	g.Eventually(w.state("fleet/eu")).WithTimeout(patience).Should(Equal(fleet.Ready))
	cl := w.engagements.of("fleet/eu")[0].cluster
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for range 100 {
		for range random.IntN(8) {
			w.list.put(profile("eu", addresses[random.IntN(3)]))
			for range random.IntN(3) {
				_ = cl.GetAPIReader().List(t.Context(), &corev1.ConfigMapList{}) // takes a while
			}
		}
		last := addresses[random.IntN(2)]
		w.list.put(profile("eu", last))
		g.Eventually(func() string { return cl.GetConfig().Host }).WithTimeout(patience).WithPolling(time.Millisecond).Should(Equal(last))
		g.Eventually(func() string { return w.status("fleet/eu").LastError }).WithTimeout(patience).WithPolling(time.Millisecond).Should(BeEmpty())
	}
	g.Expect(w.engagements.of("fleet/eu")).To(HaveLen(1))
	g.Expect(w.status("fleet/eu").State).To(Equal(fleet.Ready))
}

func TestAProbeOfTheAccessBeforeIsNoFailure(t *testing.T) {
	g := NewWithT(t)
	c := mctest.New(t)
	w := start(t, []*mctest.Cluster{c}, func(o *fleet.Options) {
		o.Connection.Probe.Interval, o.Connection.Probe.FailureThreshold = time.Millisecond, 1
	})
	addresses := []string{c.Config().Host, w.secondAddress(c)}
	w.list.put(profile("eu", addresses[0]))
	g.Eventually(w.state("fleet/eu")).WithTimeout(patience).Should(Equal(fleet.Ready))
	cl := w.engagements.of("fleet/eu")[0].cluster
	c.Fault(mctest.Slow(50 * time.Millisecond).On("namespaces")) // most of the time, a probe is under way
	for i := range 10 {
		w.list.put(profile("eu", addresses[(i+1)%2]))
		g.Eventually(func() string { return cl.GetConfig().Host }).WithTimeout(patience).Should(Equal(addresses[(i+1)%2]))
	}
	g.Expect(w.engagements.healthOf("fleet/eu")).To(BeEmpty())
}

func TestAClusterIDThatAProfileGivesLaterCounts(t *testing.T) {
	g := NewWithT(t)
	c := mctest.New(t)
	c.Fault(mctest.Forbidden.On("namespaces")) // no UID can be read
	w := start(t, []*mctest.Cluster{c})
	p := profile("eu", c.Config().Host)
	w.list.put(p)
	g.Eventually(w.state("fleet/eu")).WithTimeout(patience).Should(Equal(fleet.Ready))
	cl := w.engagements.of("fleet/eu")[0].cluster

	p = labelled(p, "with ID")
	p.Status.Properties = []v1alpha1.Property{{Name: inventory.PropertyClusterID, Value: "eu-1"}}
	w.list.put(p)
	g.Eventually(beat(cl)).WithTimeout(patience).Should(Equal("with ID"))
	moved := p.DeepCopy()
	moved.Status.AccessProviders[0].Cluster.Server = w.secondAddress(c)
	w.list.put(moved)
	g.Eventually(func() string { return cl.GetConfig().Host }).WithTimeout(patience).Should(HaveSuffix("/"))
	g.Expect(w.engagements.of("fleet/eu")).To(HaveLen(1))
}

func TestAnotherClusterIDIsAnotherClusterUnlessItsUIDSaysOtherwise(t *testing.T) {
	for _, tc := range []struct {
		name        string
		uid         bool // can be read
		ids         []string
		engagements int
	}{
		{"an ID that was not known is taken over", false, []string{"", "a", "a"}, 1},
		{"another ID is another cluster", false, []string{"a", "b"}, 2},
		{"also where it was not known at first", false, []string{"", "a", "b"}, 2},
		{"an ID that is missing is not another one", false, []string{"a", "", "a"}, 1},
		{"and not forgotten", false, []string{"a", "", "b"}, 2},
		{"the UID that can be read counts more", true, []string{"a", "b", "c"}, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			c := mctest.New(t)
			if !tc.uid {
				c.Fault(mctest.Forbidden.On("namespaces"))
			}
			w := start(t, []*mctest.Cluster{c})
			var p *inventory.Profile
			for i, id := range tc.ids {
				p = labelled(profile("eu", c.Config().Host), fmt.Sprint(i))
				if id != "" {
					p.Status.Properties = []v1alpha1.Property{{Name: inventory.PropertyClusterID, Value: id}}
				}
				w.list.put(p)
				g.Eventually(func() string {
					cl, err := w.Get(t.Context(), "fleet/eu")
					if err != nil {
						return err.Error()
					}
					return beat(cl)()
				}).WithTimeout(patience).Should(Equal(fmt.Sprint(i)))
			}
			engaged := w.engagements.of("fleet/eu")
			g.Expect(engaged).To(HaveLen(tc.engagements))
			last := engaged[len(engaged)-1]
			for _, before := range engaged[:len(engaged)-1] {
				g.Expect(before.ctx.Err()).To(HaveOccurred())
				g.Expect(beat(before.cluster)()).NotTo(Equal(beat(last.cluster)()), "the profile is of the other one")
			}

			// Credentials that turn out to be the same change nothing.
			resolved := w.method.count()
			w.method.change()
			g.Eventually(w.method.count).WithTimeout(patience).Should(BeNumerically(">", resolved))

			// What is known by now counts when the access changes, too.
			moved := p.DeepCopy()
			moved.Status.AccessProviders[0].Cluster.Server = w.secondAddress(c)
			w.list.put(moved)
			g.Eventually(func() string { return last.cluster.GetConfig().Host }).WithTimeout(patience).Should(HaveSuffix("/"))
			g.Expect(w.engagements.of("fleet/eu")).To(HaveLen(tc.engagements))
		})
	}
}

func TestWhoAsksIsToldOfChangesOfTheProfileAlone(t *testing.T) {
	g := NewWithT(t)
	c := mctest.New(t)
	w := start(t, []*mctest.Cluster{c})
	p := profile("eu", c.Config().Host)
	w.list.put(p)
	g.Eventually(w.state("fleet/eu")).WithTimeout(patience).Should(Equal(fleet.Ready))
	var changes atomic.Int32
	ctx, cancel := context.WithCancel(t.Context())
	multicluster.EngagementFrom(w.engagements.of("fleet/eu")[0].ctx).OnChange(ctx, func() { changes.Add(1) })

	resolved := w.method.count()
	w.method.change()
	g.Eventually(w.method.count).WithTimeout(patience).Should(BeNumerically(">", resolved))
	g.Expect(changes.Load()).To(BeZero(), "credentials are not the profile")

	label := func(value string) {
		p = p.DeepCopy()
		p.Labels = map[string]string{"region": value}
		w.list.put(p)
		g.Eventually(func() string {
			current, _ := fleet.ProfileFrom(w.engagements.of("fleet/eu")[0].cluster)
			return current.Labels["region"]
		}).WithTimeout(patience).Should(Equal(value))
	}
	label("north")
	g.Eventually(changes.Load).WithTimeout(patience).Should(BeEquivalentTo(1))
	cancel()
	label("south")
	w.stop()
	g.Expect(changes.Load()).To(BeEquivalentTo(1), "whoever has gone is not told")
}
