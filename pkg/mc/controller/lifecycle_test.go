// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"testing"
	"testing/synctest"

	. "github.com/onsi/gomega"

	mccontroller "github.com/rollcall-dev/rollcall/pkg/mc/controller"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
	mcreconcile "github.com/rollcall-dev/rollcall/pkg/mc/reconcile"
	mcsource "github.com/rollcall-dev/rollcall/pkg/mc/source"
)

func TestUnhealthyClusterTakesNoWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		rec := &recorder{}
		c := newController(t, rec, mccontroller.Options{})
		src := newFakeSource("a")
		g.Expect(c.MultiClusterWatch(src)).To(Succeed())
		eu, us := multicluster.NewEngagement(nil), multicluster.NewEngagement(nil)
		euCtx := multicluster.WithEngagement(t.Context(), eu)
		g.Expect(c.Engage(euCtx, "eu", &fakeCluster{})).To(Succeed())
		g.Expect(c.Engage(multicluster.WithEngagement(t.Context(), us), "us", &fakeCluster{})).To(Succeed())
		eu.SetHealthy(false) // before the controller runs
		start(t, c)
		synctest.Wait()
		g.Expect(rec.seen()).To(ConsistOf("us/a"))
		g.Expect(eu.Backlog()).To(Equal(1))
		g.Expect(us.Backlog()).To(BeZero())

		eu.SetHealthy(true)
		synctest.Wait()
		g.Expect(rec.seen()).To(ConsistOf("us/a", "eu/a"))

		eu.SetHealthy(false)
		src.enqueue("eu", "b")
		src.enqueue("us", "b")
		synctest.Wait()
		g.Expect(rec.seen()).To(ConsistOf("us/a", "eu/a", "us/b"))

		g.Expect(c.Engage(euCtx, "eu", &fakeCluster{})).To(Succeed())
		synctest.Wait()
		g.Expect(rec.seen()).To(HaveLen(3), "the engagement is unhealthy, whatever cluster it has")

		g.Expect(c.Engage(t.Context(), "eu", &fakeCluster{})).To(Succeed())
		synctest.Wait()
		g.Expect(rec.seen()).To(ConsistOf("us/a", "eu/a", "us/b", "eu/a"), "a new engagement is healthy")
		eu.SetHealthy(true)
		eu.SetHealthy(false)
		src.enqueue("eu", "c")
		synctest.Wait()
		g.Expect(rec.seen()).To(ContainElement("eu/c"), "the old engagement has no effect")
		g.Expect(eu.Backlog()).To(BeZero())
	})
}

func TestClusterLifecycle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		var events []string
		src := mcsource.TypedClusterLifecycle(func(_ context.Context, e mcsource.ClusterEvent) []mcreconcile.Request {
			events = append(events, string(e.Type)+" "+e.ClusterName.String())
			return []mcreconcile.Request{request(e.ClusterName, string(e.Type))}
		})
		rec := &recorder{}
		c := newController(t, rec, mccontroller.Options{})
		before, leave := context.WithCancel(t.Context())
		g.Expect(c.Engage(before, "before", &fakeCluster{})).To(Succeed())
		g.Expect(c.Watch(src)).To(Succeed())
		gone, leaveEarly := context.WithCancel(t.Context())
		g.Expect(c.Engage(gone, "gone before the start", &fakeCluster{})).To(Succeed())
		leaveEarly()
		synctest.Wait()
		start(t, c)
		later := multicluster.NewEngagement(nil)
		g.Expect(c.Engage(multicluster.WithEngagement(t.Context(), later), "later", &fakeCluster{})).To(Succeed())
		synctest.Wait()
		g.Expect(events).To(Equal([]string{"Engaged before", "Engaged later"}))

		later.NotifyChange()
		synctest.Wait()
		leave()
		synctest.Wait()
		g.Expect(events).To(Equal([]string{"Engaged before", "Engaged later", "Changed later", "Disengaged before"}))
		g.Expect(rec.seen()).To(ConsistOf("before/Engaged", "later/Engaged", "later/Changed", "before/Disengaged"),
			"the request for the Disengaged event is not dropped with the cluster's others")
	})
}
