// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"github.com/rollcall-dev/rollcall/pkg/inventory"
	"github.com/rollcall-dev/rollcall/pkg/mc/fleet"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
)

// withUID returns the profile as a new object.
func withUID(p *inventory.Profile, uid types.UID) *inventory.Profile {
	p = p.DeepCopy()
	p.UID = uid
	return p
}

// withClusterID returns the profile with the ClusterID, if that is not "".
func withClusterID(p *inventory.Profile, id string) *inventory.Profile {
	p = p.DeepCopy()
	if id != "" {
		p.Status.Properties = []v1alpha1.Property{{Name: inventory.PropertyClusterID, Value: id}}
	}
	return p
}

func TestRecreatedProfile(t *testing.T) {
	for _, tc := range []struct {
		name          string
		forbidden     bool // to read the UID
		before, after string
		otherAddress  bool
		rebuilt       bool
		want          int // engagements
	}{
		{name: "same UID", want: 1},
		{name: "same UID, other address", otherAddress: true, want: 1},
		{name: "same UID, other ClusterID", before: "a", after: "b", want: 1},
		{name: "other UID", rebuilt: true, want: 2},
		{name: "same ClusterID, UID not readable", forbidden: true, before: "a", after: "a", want: 1},
		{name: "other ClusterID, UID not readable", forbidden: true, before: "a", after: "b", want: 2},
		{name: "neither is known", forbidden: true, want: 2},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			c := mctest.New(t)
			if tc.forbidden {
				c.Fault(mctest.Forbidden.On("namespaces"))
			}
			env := start(t, []*mctest.Cluster{c}, func(o *fleet.Options) { o.Connection.Probe.Interval = -1 })
			p := withClusterID(profile("eu", c.Config().Host), tc.before)
			env.source.put(p)
			g.Eventually(env.state("fleet/eu")).Should(Equal(fleet.Ready))
			g.Expect(names(t, g, env.aware.of("fleet/eu")[0].cluster)).To(BeEmpty()) // starts a watch
			lists := c.Requests("list", "configmaps")

			if tc.rebuilt {
				c.Rebuild()
			}
			p = withClusterID(profile("eu", c.Config().Host), tc.after)
			if tc.otherAddress {
				p.Status.AccessProviders[0].Cluster.Server = env.addAddress(c)
			}
			for _, uid := range []types.UID{"second", "second"} { // the second time without a change
				env.source.put(withUID(p, uid))
			}
			g.Eventually(func() string {
				cl, err := env.Get(t.Context(), "fleet/eu")
				if err != nil {
					return ""
				}
				current, _ := fleet.ProfileFrom(cl)
				return string(current.UID)
			}).Should(Equal("second"))
			if tc.want == 1 {
				g.Consistently(func() []engagement { return env.aware.of("fleet/eu") }, 100*time.Millisecond).Should(HaveLen(1))
				g.Expect(c.Requests("list", "configmaps")).To(Equal(lists), "caches were not listed again")
			}
			g.Eventually(func() []engagement { return env.aware.of("fleet/eu") }).Should(HaveLen(tc.want))
			g.Eventually(env.state("fleet/eu")).Should(Equal(fleet.Ready))
			g.Expect(env.status("fleet/eu").LastError).To(BeEmpty())
		})
	}
}

func TestRecreatedProfileOfDownCluster(t *testing.T) {
	g := NewWithT(t)
	c := mctest.New(t)
	env := start(t, []*mctest.Cluster{c}, func(o *fleet.Options) { o.Connection.Probe.Interval = -1 })
	p := profile("eu", c.Config().Host)
	env.source.put(p)
	g.Eventually(env.state("fleet/eu")).Should(Equal(fleet.Ready))
	c.Fault(mctest.Unavailable)
	env.source.put(withUID(p, "second"))
	lastError := func() string { return env.status("fleet/eu").LastError }
	g.Eventually(lastError).ShouldNot(BeEmpty())
	c.Rebuild()
	c.Clear()
	g.Eventually(func() []engagement { return env.aware.of("fleet/eu") }).Should(HaveLen(2))
	g.Eventually(lastError).Should(BeEmpty())
}

func TestRecreatedProfileOfConnector(t *testing.T) {
	for _, tc := range []struct {
		name          string
		before, after string // ClusterIDs
		want          int
	}{
		{"no identity", "", "", 1},
		{"other ClusterID", "a", "b", 2},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := NewWithT(t)
				var connects atomic.Int32
				env := start(t, nil, withConnector(connectorFunc(func(context.Context, *inventory.Profile) (*fleet.Connection, error) {
					connects.Add(1)
					return &fleet.Connection{Cluster: fakeCluster{}, Fingerprint: "one"}, nil
				})))
				count := func() int { return len(env.aware.of("fleet/eu")) }
				p := profile("eu", "x")
				env.source.put(withClusterID(p, tc.before))
				synctest.Wait()
				g.Expect(count()).To(Equal(1))
				env.source.put(withUID(withClusterID(p, tc.after), "second"))
				synctest.Wait()
				g.Expect(connects.Load()).To(BeNumerically(">=", 2), "it is connected again")
				time.Sleep(2 * time.Second) // a disengaged cluster has one second for its requests
				synctest.Wait()
				g.Expect(count()).To(Equal(tc.want))
				g.Expect(env.state("fleet/eu")()).To(Equal(fleet.Ready))
				env.stop()
			})
		})
	}
}
