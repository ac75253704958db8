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

// recreated returns the profile as a new object.
func recreated(p *inventory.Profile, uid types.UID) *inventory.Profile {
	p = p.DeepCopy()
	p.UID = uid
	return p
}

// identified returns the profile with the ClusterID, if there is one.
func identified(p *inventory.Profile, id string) *inventory.Profile {
	p = p.DeepCopy()
	if id != "" {
		p.Status.Properties = []v1alpha1.Property{{Name: inventory.PropertyClusterID, Value: id}}
	}
	return p
}

func TestARecreatedProfileKeepsTheClusterThatItLedTo(t *testing.T) {
	for _, tc := range []struct {
		name          string
		forbidden     bool // to read the UID
		before, after string
		otherAddress  bool
		rebuilt       bool
		want          int // engagements
	}{
		{name: "the UID of kube-system is the same", want: 1},
		{name: "and the address is another", otherAddress: true, want: 1},
		{name: "the UID of kube-system is the same, the ClusterID is not", before: "a", after: "b", want: 1},
		{name: "the UID of kube-system is another", rebuilt: true, want: 2},
		{name: "the ClusterID is the same, no UID can be read", forbidden: true, before: "a", after: "a", want: 1},
		{name: "the ClusterID is another, no UID can be read", forbidden: true, before: "a", after: "b", want: 2},
		{name: "nothing is known", forbidden: true, want: 2},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			c := mctest.New(t)
			if tc.forbidden {
				c.Fault(mctest.Forbidden.On("namespaces"))
			}
			w := start(t, []*mctest.Cluster{c}, func(o *fleet.Options) { o.Connection.Probe.Interval = -1 })
			p := identified(profile("eu", c.Config().Host), tc.before)
			w.list.put(p)
			g.Eventually(w.state("fleet/eu")).WithTimeout(patience).Should(Equal(fleet.Ready))
			g.Expect(names(t, g, w.engagements.of("fleet/eu")[0].cluster)).To(BeEmpty()) // starts a watch
			lists := c.Requests("list", "configmaps")

			if tc.rebuilt {
				c.Rebuild()
			}
			p = identified(profile("eu", c.Config().Host), tc.after)
			if tc.otherAddress {
				p.Status.AccessProviders[0].Cluster.Server = w.secondAddress(c)
			}
			for _, uid := range []types.UID{"second", "second"} { // told twice
				w.list.put(recreated(p, uid))
			}
			g.Eventually(func() string {
				cl, err := w.Get(t.Context(), "fleet/eu")
				if err != nil {
					return ""
				}
				current, _ := fleet.ProfileFrom(cl)
				return string(current.UID)
			}).WithTimeout(patience).Should(Equal("second"))
			if tc.want == 1 {
				g.Consistently(func() []engagement { return w.engagements.of("fleet/eu") }, 100*time.Millisecond).Should(HaveLen(1))
				g.Expect(c.Requests("list", "configmaps")).To(Equal(lists), "its caches stay")
			}
			g.Eventually(func() []engagement { return w.engagements.of("fleet/eu") }).WithTimeout(patience).Should(HaveLen(tc.want))
			g.Eventually(w.state("fleet/eu")).WithTimeout(patience).Should(Equal(fleet.Ready))
			g.Expect(w.status("fleet/eu").LastError).To(BeEmpty())
		})
	}
}

func TestARecreatedProfileIsAskedForWhenItsClusterAnswers(t *testing.T) {
	g := NewWithT(t)
	c := mctest.New(t)
	w := start(t, []*mctest.Cluster{c}, func(o *fleet.Options) { o.Connection.Probe.Interval = -1 })
	p := profile("eu", c.Config().Host)
	w.list.put(p)
	g.Eventually(w.state("fleet/eu")).WithTimeout(patience).Should(Equal(fleet.Ready))
	c.Fault(mctest.Unavailable)
	w.list.put(recreated(p, "second"))
	lastError := func() string { return w.status("fleet/eu").LastError }
	g.Eventually(lastError).WithTimeout(patience).ShouldNot(BeEmpty())
	c.Rebuild()
	c.Clear()
	g.Eventually(func() []engagement { return w.engagements.of("fleet/eu") }).WithTimeout(patience).Should(HaveLen(2))
	g.Eventually(lastError).WithTimeout(patience).Should(BeEmpty())
}

func TestAConnectionThatARecreatedProfileLeadsToStays(t *testing.T) {
	for _, tc := range []struct {
		name          string
		before, after string // ClusterIDs
		want          int
	}{
		{"nothing is known of who is there", "", "", 1},
		{"the ClusterID is another", "a", "b", 2},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := NewWithT(t)
				var connects atomic.Int32
				w := start(t, nil, withConnector(connectorFunc(func(context.Context, *inventory.Profile) (*fleet.Connection, error) {
					connects.Add(1)
					return &fleet.Connection{Cluster: imaginaryCluster{}, Fingerprint: "one"}, nil
				})))
				count := func() int { return len(w.engagements.of("fleet/eu")) }
				p := profile("eu", "x")
				w.list.put(identified(p, tc.before))
				synctest.Wait()
				g.Expect(count()).To(Equal(1))
				w.list.put(recreated(identified(p, tc.after), "second"))
				synctest.Wait()
				g.Expect(connects.Load()).To(BeNumerically(">=", 2), "it is looked for")
				time.Sleep(2 * time.Second) // what leaves may take a second for its requests
				synctest.Wait()
				g.Expect(count()).To(Equal(tc.want))
				g.Expect(w.state("fleet/eu")()).To(Equal(fleet.Ready))
				w.stop()
			})
		})
	}
}
