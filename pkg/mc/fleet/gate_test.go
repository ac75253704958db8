// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/rollcall-dev/rollcall/pkg/inventory"
	"github.com/rollcall-dev/rollcall/pkg/mc/fleet"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
)

// slowReader takes its time to read clusters.
type slowReader struct {
	*engagements
	read chan struct{} // a token for each cluster that may be done
}

func (r *slowReader) Engage(ctx context.Context, name multicluster.ClusterName, cl cluster.Cluster) error {
	readInBackground(ctx, func() {
		select {
		case <-r.read:
		case <-ctx.Done():
		}
	})
	return r.engagements.Engage(ctx, name, cl)
}

// readInBackground runs the function as the start of a source that has been
// requested.
func readInBackground(ctx context.Context, read func()) {
	start := multicluster.EngagementFrom(ctx).RequestStart()
	go func() {
		defer start.Release()
		if start.Wait(ctx) == nil {
			read()
		}
	}()
}

func TestClustersAreConnectedAndListedAFewAtATime(t *testing.T) {
	g := NewWithT(t)
	f := mctest.NewFleet(t, 10)
	reader := &slowReader{read: make(chan struct{})}
	w := startWith(t, f.Clusters(), func(e *engagements) multicluster.Aware {
		reader.engagements = e
		return reader
	}, func(o *fleet.Options) { o.Connection.StartupLimit = 3 })
	for i, c := range f.Clusters() {
		w.list.put(profile(fmt.Sprintf("c%d", i), c.Config().Host))
	}
	ready := func() int { return len(w.ClusterNames()) }
	g.Eventually(ready).WithTimeout(patience).Should(Equal(3))
	g.Consistently(ready, "100ms").Should(Equal(3))
	for done := range 7 {
		reader.read <- struct{}{}
		g.Eventually(ready).WithTimeout(patience).Should(Equal(4 + done))
	}
}

func TestAPlaceIsForClustersThatAnswer(t *testing.T) {
	g := NewWithT(t)
	f := mctest.NewFleet(t, 4)
	w := start(t, f.Clusters(), func(o *fleet.Options) { o.Connection.StartupLimit, o.Connection.ConnectTimeout = 1, time.Hour })
	for _, c := range f.Clusters()[:3] {
		c.Fault(mctest.Hang)
		w.list.put(profile(c.Name(), c.Config().Host))
	}
	for _, c := range f.Clusters()[:3] {
		g.Eventually(w.state(name(c))).WithTimeout(patience).Should(Equal(fleet.Connecting), "each gives its place up to the next")
	}
	good := f.Cluster(3)
	w.list.put(profile(good.Name(), good.Config().Host))
	g.Eventually(w.state(name(good))).WithTimeout(patience).Should(Equal(fleet.Ready))

	for _, c := range f.Clusters()[:3] {
		c.Clear()
		g.Eventually(w.state(name(c))).WithTimeout(patience).Should(Equal(fleet.Ready), "it has waited outside, and comes in again")
	}
}

func TestClustersThatCannotBeReachedKeepNoPlace(t *testing.T) {
	g := NewWithT(t)
	f := mctest.NewFleet(t, 5)
	w := start(t, f.Clusters(), func(o *fleet.Options) { o.Connection.StartupLimit = 1 })
	for _, c := range f.Clusters()[:4] {
		c.Fault(mctest.Refuse)
	}
	for _, c := range f.Clusters() {
		w.list.put(profile(c.Name(), c.Config().Host))
	}
	g.Eventually(w.state(name(f.Cluster(4)))).WithTimeout(patience).Should(Equal(fleet.Ready))
}

func TestTheWaitForAPlaceDoesNotCountTowardsTheTimeLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		var tries atomic.Int32
		reader := &slowReader{read: make(chan struct{})} // whoever is engaged keeps its place
		w := startWith(t, nil, func(e *engagements) multicluster.Aware {
			reader.engagements = e
			return reader
		}, withConnector(connectorFunc(func(ctx context.Context, p *inventory.Profile) (*fleet.Connection, error) {
			tries.Add(1)
			answer := time.Millisecond
			if p.Name == "slow" {
				answer = 1500 * time.Millisecond
			}
			return imaginary{answer: answer}.Connect(ctx, p)
		})), func(o *fleet.Options) {
			o.Connection.StartupLimit, o.Connection.ConnectTimeout, o.Connection.Probe.Interval = 1, 2*time.Second, -1
		})
		w.list.put(profile("slow", "well"))
		synctest.Wait()
		w.list.put(profile("other", "well"))
		time.Sleep(2500 * time.Millisecond)
		synctest.Wait()
		g.Expect(w.state("fleet/other")()).To(Equal(fleet.Ready), "the slow one has lost its place")
		g.Expect(w.status("fleet/slow")).To(And(HaveField("State", fleet.Connecting), HaveField("Reason", fleet.WaitingForStartupSlot)))
		time.Sleep(time.Second)
		synctest.Wait()
		g.Expect(w.state("fleet/slow")()).To(Equal(fleet.Ready))
		g.Expect(tries.Load()).To(BeEquivalentTo(2), "at the first attempt")
		w.stop()
	})
}

func TestAnAccessThatChangesWhileItsClusterIsListedWaitsForNoPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		var tries atomic.Int32
		reader := &slowReader{read: make(chan struct{})}
		w := startWith(t, nil, func(e *engagements) multicluster.Aware {
			reader.engagements = e
			return reader
		}, withConnector(connectorFunc(func(ctx context.Context, p *inventory.Profile) (*fleet.Connection, error) {
			tries.Add(1)
			c, err := imaginary{}.Connect(ctx, p)
			c.Fingerprint = "the same"
			return c, err
		})), func(o *fleet.Options) {
			o.Connection.StartupLimit, o.Connection.ConnectTimeout, o.Connection.Probe.Interval = 1, time.Hour, -1
		})
		w.list.put(profile("eu", "well"), profile("us", "well"))
		synctest.Wait()
		listed := w.ClusterNames()
		g.Expect(listed).To(HaveLen(1))
		changed := profile(strings.TrimPrefix(string(listed[0]), "fleet/"), "as well")
		w.list.put(changed)
		synctest.Wait()
		g.Expect(tries.Load()).To(BeEquivalentTo(2), "what it is listed with may be refused")
		g.Expect(w.ClusterNames()).To(Equal(listed), "it has its place still")
		reader.read <- struct{}{}
		synctest.Wait()
		g.Expect(w.ClusterNames()).To(HaveLen(2))
		w.list.put(profile(changed.Name, "again"))
		synctest.Wait()
		g.Expect(tries.Load()).To(BeEquivalentTo(3), "it has none any more")
		w.stop()
	})
}

func name(c *mctest.Cluster) multicluster.ClusterName {
	return multicluster.ClusterName("fleet/" + c.Name())
}
