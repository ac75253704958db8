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

// gatedAware starts one source in each cluster, which lists when the test allows it.
type gatedAware struct {
	*awareRecorder
	read chan struct{} // a value for each cluster that may be listed
}

func (r *gatedAware) Engage(ctx context.Context, name multicluster.ClusterName, cl cluster.Cluster) error {
	requestStart(ctx, func() {
		select {
		case <-r.read:
		case <-ctx.Done():
		}
	})
	return r.awareRecorder.Engage(ctx, name, cl)
}

// requestStart runs the function as the start of a source.
func requestStart(ctx context.Context, read func()) {
	start := multicluster.EngagementFrom(ctx).RequestStart()
	go func() {
		defer start.Release()
		if start.Wait(ctx) == nil {
			read()
		}
	}()
}

func TestStartupLimit(t *testing.T) {
	g := NewWithT(t)
	f := mctest.NewFleet(t, 10)
	reader := &gatedAware{read: make(chan struct{})}
	env := startWith(t, f.Clusters(), func(e *awareRecorder) multicluster.Aware {
		reader.awareRecorder = e
		return reader
	}, func(o *fleet.Options) { o.Connection.StartupLimit = 3 })
	for i, c := range f.Clusters() {
		env.source.put(profile(fmt.Sprintf("c%d", i), c.Config().Host))
	}
	ready := func() int { return len(env.ClusterNames()) }
	g.Eventually(ready).Should(Equal(3))
	g.Consistently(ready, "100ms").Should(Equal(3))
	for done := range 7 {
		reader.read <- struct{}{}
		g.Eventually(ready).Should(Equal(4 + done))
	}
}

func TestHangingClustersLoseSlots(t *testing.T) {
	g := NewWithT(t)
	f := mctest.NewFleet(t, 4)
	env := start(t, f.Clusters(), func(o *fleet.Options) { o.Connection.StartupLimit, o.Connection.ConnectTimeout = 1, time.Hour })
	for _, c := range f.Clusters()[:3] {
		c.Fault(mctest.Hang)
		env.source.put(profile(c.Name(), c.Config().Host))
	}
	for _, c := range f.Clusters()[:3] {
		g.Eventually(env.state(name(c))).Should(Equal(fleet.Connecting), "each loses its slot")
	}
	good := f.Cluster(3)
	env.source.put(profile(good.Name(), good.Config().Host))
	g.Eventually(env.state(name(good))).Should(Equal(fleet.Ready))

	for _, c := range f.Clusters()[:3] {
		c.Clear()
		g.Eventually(env.state(name(c))).Should(Equal(fleet.Ready), "it gets another slot")
	}
}

func TestUnreachableClustersFreeSlots(t *testing.T) {
	g := NewWithT(t)
	f := mctest.NewFleet(t, 5)
	env := start(t, f.Clusters(), func(o *fleet.Options) { o.Connection.StartupLimit = 1 })
	for _, c := range f.Clusters()[:4] {
		c.Fault(mctest.Refuse)
	}
	for _, c := range f.Clusters() {
		env.source.put(profile(c.Name(), c.Config().Host))
	}
	g.Eventually(env.state(name(f.Cluster(4)))).Should(Equal(fleet.Ready))
}

func TestSlotWaitIsNotTimed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		var tries atomic.Int32
		reader := &gatedAware{read: make(chan struct{})} // engaged clusters keep their slots
		env := startWith(t, nil, func(e *awareRecorder) multicluster.Aware {
			reader.awareRecorder = e
			return reader
		}, withConnector(connectorFunc(func(ctx context.Context, p *inventory.Profile) (*fleet.Connection, error) {
			tries.Add(1)
			response := time.Millisecond
			if p.Name == "slow" {
				response = 1500 * time.Millisecond
			}
			return slowConnector{response: response}.Connect(ctx, p)
		})), func(o *fleet.Options) {
			o.Connection.StartupLimit, o.Connection.ConnectTimeout, o.Connection.Probe.Interval = 1, 2*time.Second, -1
		})
		env.source.put(profile("slow", healthy))
		synctest.Wait()
		env.source.put(profile("other", healthy))
		time.Sleep(2500 * time.Millisecond)
		synctest.Wait()
		g.Expect(env.state("fleet/other")()).To(Equal(fleet.Ready), "the slow cluster has lost its slot")
		g.Expect(env.status("fleet/slow")).To(And(HaveField("State", fleet.Connecting), HaveField("Reason", fleet.WaitingForStartupSlot)))
		time.Sleep(time.Second)
		synctest.Wait()
		g.Expect(env.state("fleet/slow")()).To(Equal(fleet.Ready))
		g.Expect(tries.Load()).To(BeEquivalentTo(2), "at the first attempt")
		env.stop()
	})
}

func TestReconnectUsesHeldSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		var tries atomic.Int32
		reader := &gatedAware{read: make(chan struct{})}
		env := startWith(t, nil, func(e *awareRecorder) multicluster.Aware {
			reader.awareRecorder = e
			return reader
		}, withConnector(connectorFunc(func(ctx context.Context, p *inventory.Profile) (*fleet.Connection, error) {
			tries.Add(1)
			c, err := slowConnector{}.Connect(ctx, p)
			c.Fingerprint = "equal"
			return c, err
		})), func(o *fleet.Options) {
			o.Connection.StartupLimit, o.Connection.ConnectTimeout, o.Connection.Probe.Interval = 1, time.Hour, -1
		})
		env.source.put(profile("eu", healthy), profile("us", healthy))
		synctest.Wait()
		listed := env.ClusterNames()
		g.Expect(listed).To(HaveLen(1))
		changed := profile(strings.TrimPrefix(string(listed[0]), "fleet/"), "changed")
		env.source.put(changed)
		synctest.Wait()
		g.Expect(tries.Load()).To(BeEquivalentTo(2), "the credentials of its lists may have expired")
		g.Expect(env.ClusterNames()).To(Equal(listed), "it still has its slot")
		reader.read <- struct{}{}
		synctest.Wait()
		g.Expect(env.ClusterNames()).To(HaveLen(2))
		env.source.put(profile(changed.Name, "again"))
		synctest.Wait()
		g.Expect(tries.Load()).To(BeEquivalentTo(3), "it waits for a slot")
		env.stop()
	})
}

func name(c *mctest.Cluster) multicluster.ClusterName {
	return multicluster.ClusterName("fleet/" + c.Name())
}
