// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"

	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/source"

	mccontroller "github.com/rollcall-dev/rollcall/pkg/mc/controller"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
	mcreconcile "github.com/rollcall-dev/rollcall/pkg/mc/reconcile"
	mcsource "github.com/rollcall-dev/rollcall/pkg/mc/source"
)

// brokenWatcher is a ClusterWatcher whose Start fails.
type brokenWatcher struct {
	calls atomic.Int32
	tried chan struct{} // if set, Start fails once it is closed
}

func (w *brokenWatcher) Start(context.Context, sourceQueue) error {
	if w.tried != nil {
		<-w.tried
	}
	return errors.New("cannot start")
}

func (w *brokenWatcher) ClusterEngaged(context.Context, multicluster.ClusterName, cluster.Cluster) {
	w.calls.Add(1)
}

func (w *brokenWatcher) ClusterDisengaged(multicluster.ClusterName, cluster.Cluster) {
	w.calls.Add(1)
}

func TestWatchFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		c := newController(t, &recorder{}, mccontroller.Options{})
		g.Expect(c.Engage(t.Context(), "eu", &fakeCluster{})).To(Succeed())
		start(t, c)
		synctest.Wait()
		broken := &brokenWatcher{}
		g.Expect(c.Watch(broken)).To(MatchError("cannot start"))
		ctx, leave := context.WithCancel(t.Context())
		g.Expect(c.Engage(ctx, "us", &fakeCluster{})).To(Succeed())
		leave()
		synctest.Wait()
		g.Expect(broken.calls.Load()).To(BeZero())
	})
}

// slowly is a source whose function ignores its context, and returns once finish
// is closed.
func slowly(called, finish chan struct{}) source.TypedSource[mcreconcile.Request] {
	return mcsource.TypedClusterLifecycle(func(context.Context, mcsource.ClusterEvent) []mcreconcile.Request {
		called <- struct{}{}
		<-finish
		return nil
	})
}

func TestStartWaitsForCallbacks(t *testing.T) {
	for _, tc := range []struct {
		name   string
		warm   bool
		broken bool // a source fails to start, which ends the controller
	}{
		{"when its context ends", false, false},
		{"when its context ends, after a warm-up", true, false},
		{"when a source fails to start", false, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := NewWithT(t)
				called, finish := make(chan struct{}, 10), make(chan struct{})
				c := newController(t, &recorder{}, mccontroller.Options{EnableWarmup: ptr.To(tc.warm)})
				g.Expect(c.Watch(slowly(called, finish))).To(Succeed())
				broken := &brokenWatcher{tried: make(chan struct{})}
				if tc.broken {
					g.Expect(c.Watch(broken)).To(Succeed())
				}
				g.Expect(c.Engage(t.Context(), "eu", &fakeCluster{})).To(Succeed())
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if tc.warm {
					g.Expect(c.(interface{ Warmup(context.Context) error }).Warmup(ctx)).To(Succeed())
				}
				ended := make(chan error, 1)
				go func() { ended <- c.Start(ctx) }()
				<-called
				g.Expect(c.Engage(t.Context(), "us", &fakeCluster{})).To(Succeed())
				if tc.broken {
					close(broken.tried)
				} else {
					cancel()
				}
				synctest.Wait()
				g.Expect(ended).NotTo(Receive(), "the function still runs")
				close(finish)
				synctest.Wait()
				err := <-ended
				g.Expect(err != nil).To(Equal(tc.broken))
				g.Expect(called).To(BeEmpty(), "it is not called again")
			})
		})
	}
}

func TestSecondStart(t *testing.T) {
	for _, tc := range []struct {
		name string
		warm bool
	}{
		{"without a warm-up", false},
		{"after a warm-up", true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := NewWithT(t)
				c := newController(t, &recorder{}, mccontroller.Options{EnableWarmup: ptr.To(tc.warm)})
				g.Expect(c.Watch(mcsource.ClusterLifecycle())).To(Succeed())
				if tc.warm {
					g.Expect(c.(interface{ Warmup(context.Context) error }).Warmup(t.Context())).To(Succeed())
				}
				first := make(chan error, 1)
				go func() { first <- c.Start(t.Context()) }()
				synctest.Wait()
				g.Expect(c.Start(t.Context())).To(MatchError(ContainSubstring("more than once")))
				synctest.Wait()
				g.Expect(first).To(Receive(BeNil()))
			})
		})
	}
}
