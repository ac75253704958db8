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

// addAddress returns a second address of the cluster.
func (env *testEnv) addAddress(c *mctest.Cluster) string {
	config := c.Config()
	config.Host += "/"
	env.credentials.add(config)
	return config.Host
}

// withLabel returns the profile with a label.
func withLabel(p *inventory.Profile, value string) *inventory.Profile {
	p = p.DeepCopy()
	p.Labels = map[string]string{"label": value}
	return p
}

// label returns a function that returns the label of the cluster's current profile.
func label(cl cluster.Cluster) func() string {
	return func() string {
		current, _ := fleet.ProfileFrom(cl)
		return current.Labels["label"]
	}
}

func TestHangingReconnectBlocksNothing(t *testing.T) {
	g := NewWithT(t)
	f := mctest.NewFleet(t, 2)
	env := start(t, f.Clusters(), quickProbes, func(o *fleet.Options) { o.Connection.ConnectTimeout = time.Hour })
	env.source.put(profile("eu", f.Cluster(0).Config().Host))
	g.Eventually(env.state("fleet/eu")).Should(Equal(fleet.Ready))
	cl := env.aware.of("fleet/eu")[0].cluster

	f.Cluster(1).Fault(mctest.Hang)
	p := profile("eu", f.Cluster(1).Config().Host)
	env.source.put(p)
	g.Eventually(f.Cluster(1).Connections).Should(Equal(1), "the new access is used")
	env.source.put(withLabel(p, "during"))
	g.Eventually(label(cl)).Should(Equal("during"))
	f.Cluster(0).Fault(mctest.Unavailable)
	g.Eventually(env.state("fleet/eu")).Should(Equal(fleet.Degraded))
	f.Cluster(0).Clear()
	g.Eventually(env.state("fleet/eu")).Should(Equal(fleet.Ready))
}

func TestHeartbeatsKeepReconnectDelay(t *testing.T) {
	g := NewWithT(t)
	c := mctest.New(t)
	env := start(t, []*mctest.Cluster{c}, func(o *fleet.Options) { o.Connection.MinBackoff, o.Connection.MaxBackoff = time.Hour, time.Hour })
	env.source.put(profile("eu", c.Config().Host))
	g.Eventually(env.state("fleet/eu")).Should(Equal(fleet.Ready))
	cl := env.aware.of("fleet/eu")[0].cluster

	p := profile("eu", "https://nowhere")
	env.source.put(p)
	g.Eventually(func() string { return env.status("fleet/eu").LastError }).Should(ContainSubstring("no credentials"))
	resolved := env.credentials.count()
	for i := range 50 {
		env.source.put(withLabel(p, fmt.Sprint(i)))
		g.Eventually(label(cl)).Should(Equal(fmt.Sprint(i)))
	}
	g.Expect(env.credentials.count()).To(Equal(resolved))
	g.Expect(env.status("fleet/eu").LastError).To(ContainSubstring("no credentials"))
}

func TestLastOfManyChangesWins(t *testing.T) {
	g := NewWithT(t)
	c := mctest.New(t)
	env := start(t, []*mctest.Cluster{c})
	addresses := []string{c.Config().Host, env.addAddress(c), "https://nowhere"}
	env.source.put(profile("eu", addresses[0]))
	g.Eventually(env.state("fleet/eu")).Should(Equal(fleet.Ready))
	cl := env.aware.of("fleet/eu")[0].cluster
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for range 100 {
		for range random.IntN(8) {
			env.source.put(profile("eu", addresses[random.IntN(3)]))
			for range random.IntN(3) {
				_ = cl.GetAPIReader().List(t.Context(), &corev1.ConfigMapList{}) // takes some time
			}
		}
		last := addresses[random.IntN(2)]
		env.source.put(profile("eu", last))
		g.Eventually(func() string { return cl.GetConfig().Host }).WithPolling(time.Millisecond).Should(Equal(last))
		g.Eventually(func() string { return env.status("fleet/eu").LastError }).WithPolling(time.Millisecond).Should(BeEmpty())
	}
	g.Expect(env.aware.of("fleet/eu")).To(HaveLen(1))
	g.Expect(env.status("fleet/eu").State).To(Equal(fleet.Ready))
}

func TestProbeOfOldConnection(t *testing.T) {
	g := NewWithT(t)
	c := mctest.New(t)
	env := start(t, []*mctest.Cluster{c}, func(o *fleet.Options) {
		o.Connection.Probe.Interval, o.Connection.Probe.FailureThreshold = time.Millisecond, 1
	})
	addresses := []string{c.Config().Host, env.addAddress(c)}
	env.source.put(profile("eu", addresses[0]))
	g.Eventually(env.state("fleet/eu")).Should(Equal(fleet.Ready))
	cl := env.aware.of("fleet/eu")[0].cluster
	c.Fault(mctest.Slow(50 * time.Millisecond).On("namespaces")) // a probe is nearly always under way
	for i := range 10 {
		env.source.put(profile("eu", addresses[(i+1)%2]))
		g.Eventually(func() string { return cl.GetConfig().Host }).Should(Equal(addresses[(i+1)%2]))
	}
	g.Expect(env.aware.healthOf("fleet/eu")).To(BeEmpty())
}

func TestClusterIDAddedLater(t *testing.T) {
	g := NewWithT(t)
	c := mctest.New(t)
	c.Fault(mctest.Forbidden.On("namespaces")) // no UID can be read
	env := start(t, []*mctest.Cluster{c})
	p := profile("eu", c.Config().Host)
	env.source.put(p)
	g.Eventually(env.state("fleet/eu")).Should(Equal(fleet.Ready))
	cl := env.aware.of("fleet/eu")[0].cluster

	p = withLabel(p, "with ID")
	p.Status.Properties = []v1alpha1.Property{{Name: inventory.PropertyClusterID, Value: "eu-1"}}
	env.source.put(p)
	g.Eventually(label(cl)).Should(Equal("with ID"))
	moved := p.DeepCopy()
	moved.Status.AccessProviders[0].Cluster.Server = env.addAddress(c)
	env.source.put(moved)
	g.Eventually(func() string { return cl.GetConfig().Host }).Should(HaveSuffix("/"))
	g.Expect(env.aware.of("fleet/eu")).To(HaveLen(1))
}

func TestClusterIDChange(t *testing.T) {
	for _, tc := range []struct {
		name          string
		uid           bool // can be read
		ids           []string
		awareRecorder int
	}{
		{"an ID that is added is adopted", false, []string{"", "a", "a"}, 1},
		{"another ID means another cluster", false, []string{"a", "b"}, 2},
		{"another ID after one was added", false, []string{"", "a", "b"}, 2},
		{"an ID may be missing", false, []string{"a", "", "a"}, 1},
		{"another ID after one was missing", false, []string{"a", "", "b"}, 2},
		{"a readable UID takes precedence", true, []string{"a", "b", "c"}, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			c := mctest.New(t)
			if !tc.uid {
				c.Fault(mctest.Forbidden.On("namespaces"))
			}
			env := start(t, []*mctest.Cluster{c})
			var p *inventory.Profile
			for i, id := range tc.ids {
				p = withLabel(profile("eu", c.Config().Host), fmt.Sprint(i))
				if id != "" {
					p.Status.Properties = []v1alpha1.Property{{Name: inventory.PropertyClusterID, Value: id}}
				}
				env.source.put(p)
				g.Eventually(func() string {
					cl, err := env.Get(t.Context(), "fleet/eu")
					if err != nil {
						return err.Error()
					}
					return label(cl)()
				}).Should(Equal(fmt.Sprint(i)))
			}
			engaged := env.aware.of("fleet/eu")
			g.Expect(engaged).To(HaveLen(tc.awareRecorder))
			last := engaged[len(engaged)-1]
			for _, before := range engaged[:len(engaged)-1] {
				g.Expect(before.ctx.Err()).To(HaveOccurred())
				g.Expect(label(before.cluster)()).NotTo(Equal(label(last.cluster)()), "each engagement keeps its own profile")
			}

			// Equal credentials change nothing.
			resolved := env.credentials.count()
			env.credentials.change()
			g.Eventually(env.credentials.count).Should(BeNumerically(">", resolved))

			// The current identity counts when the access changes, too.
			moved := p.DeepCopy()
			moved.Status.AccessProviders[0].Cluster.Server = env.addAddress(c)
			env.source.put(moved)
			g.Eventually(func() string { return last.cluster.GetConfig().Host }).Should(HaveSuffix("/"))
			g.Expect(env.aware.of("fleet/eu")).To(HaveLen(tc.awareRecorder))
		})
	}
}

func TestChangeNotification(t *testing.T) {
	g := NewWithT(t)
	c := mctest.New(t)
	env := start(t, []*mctest.Cluster{c})
	p := profile("eu", c.Config().Host)
	env.source.put(p)
	g.Eventually(env.state("fleet/eu")).Should(Equal(fleet.Ready))
	var changes atomic.Int32
	ctx, cancel := context.WithCancel(t.Context())
	multicluster.EngagementFrom(env.aware.of("fleet/eu")[0].ctx).OnChange(ctx, func() { changes.Add(1) })

	resolved := env.credentials.count()
	env.credentials.change()
	g.Eventually(env.credentials.count).Should(BeNumerically(">", resolved))
	g.Expect(changes.Load()).To(BeZero(), "only changes of the profile are notified")

	label := func(value string) {
		p = p.DeepCopy()
		p.Labels = map[string]string{"region": value}
		env.source.put(p)
		g.Eventually(func() string {
			current, _ := fleet.ProfileFrom(env.aware.of("fleet/eu")[0].cluster)
			return current.Labels["region"]
		}).Should(Equal(value))
	}
	label("north")
	g.Eventually(changes.Load).Should(BeEquivalentTo(1))
	cancel()
	label("south")
	env.stop()
	g.Expect(changes.Load()).To(BeEquivalentTo(1), "not notified after its context ended")
}
