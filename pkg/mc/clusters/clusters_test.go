// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package clusters_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/rollcall-dev/rollcall/pkg/mc/clusters"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
)

func TestAdd(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		g := NewWithT(t)
		eu := newFake("eu")
		// A component may look up the cluster that it is engaged with.
		w.engagements.then = func() { g.Expect(w.Get(t.Context(), "eu")).To(BeIdenticalTo(eu)) }
		g.Expect(w.add("eu", eu)).To(Succeed())

		synctest.Wait() // add may return just before Start is called
		g.Expect(eu.runs()).To(BeTrue())
		g.Expect(w.GetTyped(t.Context(), "eu")).To(BeIdenticalTo(eu))
		g.Expect(w.ClusterNames()).To(HaveExactElements(multicluster.ClusterName("eu")))
		g.Expect(w.engagements.list()).To(HaveLen(1))
		g.Expect(w.engagements.list()[0].name).To(Equal(multicluster.ClusterName("eu")))
		g.Expect(w.engagements.live()).To(HaveExactElements(BeIdenticalTo(eu)))
	})
}

func TestDefaults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		ctx, end := context.WithCancel(t.Context())
		defer end()
		provider := struct {
			clusters.Clusters[cluster.Cluster]
		}{clusters.New[cluster.Cluster]()}
		for _, c := range []*clusters.Clusters[cluster.Cluster]{{}, &provider.Clusters} {
			slow := newFake("slow")
			slow.sync.shut()
			g.Expect(c.ClusterNames()).To(BeEmpty())
			g.Expect(c.Indexers()).To(BeEmpty())
			c.Remove("unknown")
			g.Expect(c.Add(ctx, "eu", newFake("eu"), nil)).To(Succeed())
			g.Expect(c.AddOrReplace(ctx, "eu", newFake("eu"), nil)).To(Succeed())
			began := time.Now()
			g.Expect(c.Add(ctx, "slow", slow, nil)).To(MatchError(context.DeadlineExceeded))
			g.Expect(time.Since(began)).To(Equal(30 * time.Second))
		}
		g.Expect(provider.WaitCacheTimeout).To(Equal(30 * time.Second))
		g.Expect(provider.EqualClusters).NotTo(BeNil())
		g.Expect(provider.ErrorHandler).NotTo(BeNil())
	})
}

func TestClusterLeaves(t *testing.T) {
	for _, tc := range []struct {
		name    string
		leave   func(*world, *fakeCluster)
		reports int
	}{
		{
			name:  "when it is removed",
			leave: func(w *world, _ *fakeCluster) { w.Remove("eu") },
		},
		{
			name:  "when the context that it was added with ends",
			leave: func(w *world, _ *fakeCluster) { w.end() },
		},
		{
			name:    "when its Start fails",
			leave:   func(_ *world, cl *fakeCluster) { cl.fail <- errFake },
			reports: 1,
		},
		{
			name:    "when its Start returns",
			leave:   func(_ *world, cl *fakeCluster) { cl.fail <- nil },
			reports: 1,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				g := NewWithT(t)
				eu := newFake("eu")
				g.Expect(w.add("eu", eu)).To(Succeed())
				tc.leave(w, eu)
				synctest.Wait()

				_, err := w.Get(t.Context(), "eu")
				g.Expect(err).To(MatchError(multicluster.ErrClusterNotFound))
				g.Expect(err).NotTo(MatchError(multicluster.ErrClusterNotReady))
				g.Expect(w.ClusterNames()).To(BeEmpty())
				g.Expect(w.engagements.live()).To(BeEmpty())
				g.Expect(eu.runs()).To(BeFalse())
				g.Expect(w.reports.list()).To(HaveLen(tc.reports))
			})
		})
	}
}

func TestContextOfACluster(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		g := NewWithT(t)
		type key struct{}
		engagement := multicluster.NewEngagement(nil)
		ctx := multicluster.WithEngagement(context.WithValue(w.ctx, key{}, "value"), engagement)
		ctx, leave := context.WithCancelCause(ctx)
		g.Expect(w.Add(ctx, "eu", newFake("eu"), w.engagements)).To(Succeed())
		engaged := w.engagements.list()[0].ctx
		g.Expect(engaged.Value(key{})).To(Equal("value"))
		g.Expect(multicluster.EngagementFrom(engaged)).To(BeIdenticalTo(engagement))
		leave(errFake)
		synctest.Wait()
		g.Expect(context.Cause(engaged)).To(MatchError(errFake))
	})
}

func TestNameIsFreeWhenTheContextHasEnded(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		g := NewWithT(t)
		first, second := newFake("eu"), newFake("eu")
		ctx, leave := context.WithCancel(w.ctx)
		g.Expect(w.Add(ctx, "eu", first, w.engagements)).To(Succeed())
		leave()
		// Before any cleanup has run.
		_, err := w.Get(t.Context(), "eu")
		g.Expect(err).To(MatchError(multicluster.ErrClusterNotFound))
		g.Expect(w.add("eu", second)).To(Succeed())
		synctest.Wait()
		g.Expect(w.Get(t.Context(), "eu")).To(BeIdenticalTo(second))
		g.Expect(w.engagements.live()).To(HaveExactElements(BeIdenticalTo(second)))
	})
}

func TestAddFails(t *testing.T) {
	for _, tc := range []struct {
		name    string
		arrange func(*world, *fakeCluster) *fakeCluster
		during  func(*world, *fakeCluster)
		err     any
		after   time.Duration
		reports int
	}{
		{
			name:    "a cluster whose caches do not sync in time",
			arrange: func(_ *world, cl *fakeCluster) *fakeCluster { cl.sync.shut(); return cl },
			err:     context.DeadlineExceeded,
			after:   10 * time.Second,
		},
		{
			name:    "a cluster that is removed while it starts",
			arrange: func(_ *world, cl *fakeCluster) *fakeCluster { cl.sync.shut(); return cl },
			during:  func(w *world, _ *fakeCluster) { w.Remove("eu") },
			err:     ContainSubstring("removed"),
		},
		{
			name:    "a cluster whose context ends while it starts",
			arrange: func(_ *world, cl *fakeCluster) *fakeCluster { cl.sync.shut(); return cl },
			during:  func(w *world, _ *fakeCluster) { w.end() },
			err:     context.Canceled,
		},
		{
			name:    "a cluster whose Start fails before its caches have synced",
			arrange: func(_ *world, cl *fakeCluster) *fakeCluster { cl.sync.shut(); return cl },
			during:  func(_ *world, cl *fakeCluster) { cl.fail <- errFake },
			err:     errFake,
			reports: 1,
		},
		{
			name: "a cluster that refuses an index",
			arrange: func(w *world, cl *fakeCluster) *fakeCluster {
				_ = w.IndexField(w.ctx, pod, "refused", nil)
				return cl
			},
			err: errFake,
		},
		{
			name:    "a cluster whose Engage fails",
			arrange: func(w *world, cl *fakeCluster) *fakeCluster { w.engagements.fail = errFake; return cl },
			err:     errFake,
		},
		{
			name:    "a cluster whose context has ended already",
			arrange: func(w *world, cl *fakeCluster) *fakeCluster { w.end(); return cl },
			err:     context.Canceled,
		},
		{
			name:    "no cluster at all",
			arrange: func(*world, *fakeCluster) *fakeCluster { return nil },
			err:     ContainSubstring("must not be nil"),
		},
	} {
		for _, method := range []struct {
			name string
			call func(*world, multicluster.ClusterName, *fakeCluster) error
		}{{"Add", (*world).add}, {"AddOrReplace", (*world).addOrReplace}} {
			t.Run(fmt.Sprintf("%s: %s", method.name, tc.name), func(t *testing.T) {
				inBubble(t, func(t *testing.T, w *world) {
					g := NewWithT(t)
					eu := newFake("eu")
					cl := tc.arrange(w, eu)
					began := time.Now()
					result := inBackground(func() error { return method.call(w, "eu", cl) })
					if tc.during != nil {
						_, err := w.Get(t.Context(), "eu")
						g.Expect(err).To(MatchError(multicluster.ErrClusterNotReady))
						g.Expect(w.ClusterNames()).To(BeEmpty(), "Get does not find it either")
						tc.during(w, eu)
					}
					err := <-result
					g.Expect(err).To(MatchError(tc.err))
					g.Expect(err).To(MatchError(ContainSubstring(`cluster "eu"`)))
					g.Expect(time.Since(began)).To(Equal(tc.after))

					_, err = w.Get(t.Context(), "eu")
					g.Expect(err).To(MatchError(multicluster.ErrClusterNotFound))
					g.Expect(err).NotTo(MatchError(multicluster.ErrClusterNotReady))
					synctest.Wait()
					g.Expect(eu.runs()).To(BeFalse())
					g.Expect(w.engagements.live()).To(BeEmpty())
					g.Expect(w.reports.list()).To(HaveLen(tc.reports))
				})
			})
		}
	}
}

func TestErrClusterExists(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		g := NewWithT(t)
		ready, starting := newFake("eu"), newFake("us")
		starting.sync.shut()
		g.Expect(w.add("eu", ready)).To(Succeed())
		result := inBackground(func() error { return w.add("us", starting) })

		other := newFake("eu")
		g.Expect(w.add("eu", other)).To(MatchError(clusters.ErrClusterExists))
		g.Expect(w.add("us", other)).To(MatchError(clusters.ErrClusterExists), "also while it starts")
		g.Expect(other.starts()).To(BeZero())

		starting.sync.open()
		g.Expect(<-result).To(Succeed())
		g.Expect(w.ClusterNames()).To(HaveExactElements(multicluster.ClusterName("eu"), multicluster.ClusterName("us")))
	})
}

func TestClusterHangs(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		g := NewWithT(t)
		unsynced, unindexed, unstoppable := newFake("a"), newFake("b"), newFake("c")
		unsynced.sync.shut()
		unindexed.index.shut()
		unstoppable.start.shut()
		g.Expect(w.IndexField(t.Context(), pod, "spec.nodeName", nil)).To(Succeed())

		began := time.Now()
		first := inBackground(func() error { return w.add("a", unsynced) })
		second := inBackground(func() error { return w.add("b", unindexed) })
		g.Expect(w.add("c", unstoppable)).To(Succeed())
		w.Remove("c")
		g.Expect(w.add("c", newFake("c"))).To(Succeed(), "although the old one has not stopped")
		g.Expect(w.add("d", newFake("d"))).To(Succeed())
		g.Expect(w.Get(t.Context(), "d")).NotTo(BeNil())
		w.Remove("d")
		g.Expect(time.Since(began)).To(BeZero())

		g.Expect(<-first).To(MatchError(context.DeadlineExceeded))
		g.Expect(<-second).To(MatchError(context.DeadlineExceeded))
		g.Expect(time.Since(began)).To(Equal(10 * time.Second))
		unindexed.index.open()
		unstoppable.start.open()
	})
}
