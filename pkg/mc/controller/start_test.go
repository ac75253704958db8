// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/source"

	mccontroller "github.com/rollcall-dev/rollcall/pkg/mc/controller"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
	mcreconcile "github.com/rollcall-dev/rollcall/pkg/mc/reconcile"
)

func TestStartHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		rec := &recorder{}
		c := newController(t, rec, mccontroller.Options{CacheSyncTimeout: time.Minute})
		src, limit := newFakeSource("a"), newLimit(1)
		src.fail("eu", hangAtStart)
		g.Expect(c.MultiClusterWatch(src)).To(Succeed())
		start(t, c)
		g.Expect(c.Engage(limited(t.Context(), limit), "eu", &fakeCluster{})).To(Succeed())
		time.Sleep(time.Minute + time.Millisecond)
		g.Expect(statusOf(c, "eu").LastError).To(Equal("not started within 1m0s"))
		_, held := limit.count()
		g.Expect(held).To(BeZero(), "released")

		src.fail("eu", nowhere)
		time.Sleep(time.Minute)
		g.Expect(statusOf(c, "eu")).To(Equal(mccontroller.ClusterStatus{ClusterName: "eu"}))
		g.Expect(src.attempts("eu")).To(Equal(2))
		g.Expect(rec.seen()).To(Equal([]string{"eu/a"}))
	})
}

// deafSource is a source whose Start ignores its context.
type deafSource struct {
	started atomic.Int32
	finish  chan struct{}
}

func (s *deafSource) ForCluster(multicluster.ClusterName, cluster.Cluster) (source.TypedSource[mcreconcile.Request], bool, error) {
	return source.TypedFunc[mcreconcile.Request](func(context.Context, sourceQueue) error {
		s.started.Add(1)
		<-s.finish
		return nil
	}), true, nil
}

func TestStartIgnoresItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		c := newController(t, &recorder{}, mccontroller.Options{CacheSyncTimeout: time.Minute})
		src, limit := &deafSource{finish: make(chan struct{})}, newLimit(1)
		g.Expect(c.MultiClusterWatch(src)).To(Succeed())
		start(t, c)
		g.Expect(c.Engage(limited(t.Context(), limit), "eu", &fakeCluster{})).To(Succeed())
		time.Sleep(time.Hour)
		g.Expect(statusOf(c, "eu").LastError).To(Equal("not started within 1m0s"))
		_, held := limit.count()
		g.Expect(held).To(BeZero())
		g.Expect(src.started.Load()).To(BeEquivalentTo(1), "one Start at a time")

		close(src.finish)
		time.Sleep(time.Minute)
		g.Expect(src.started.Load()).To(BeEquivalentTo(2), "the first one was too late")
		g.Expect(statusOf(c, "eu")).To(Equal(mccontroller.ClusterStatus{ClusterName: "eu"}))
	})
}

func TestStartHangsAfterClusterDisengaged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		var logged lines
		c := newController(t, &recorder{}, mccontroller.Options{CacheSyncTimeout: time.Minute, Logger: logged.logger()})
		src := &deafSource{finish: make(chan struct{})}
		g.Expect(c.MultiClusterWatch(src)).To(Succeed())
		start(t, c)
		ctx, leave := context.WithCancel(t.Context())
		g.Expect(c.Engage(ctx, "eu", &fakeCluster{})).To(Succeed())
		synctest.Wait()
		leave()
		time.Sleep(time.Hour)
		g.Expect(logged.with("Cannot watch a kind in this cluster yet, the controller's requests for the cluster wait")).To(BeEmpty())
		close(src.finish)
	})
}
