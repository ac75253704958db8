// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package clusters_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"

	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
)

func TestEqualClusterIsKept(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		g := NewWithT(t)
		first, equal := newFake("host"), newFake("host")
		g.Expect(w.addOrReplace("eu", first)).To(Succeed())
		g.Expect(w.addOrReplace("eu", equal)).To(Succeed())

		g.Expect(w.Get(t.Context(), "eu")).To(BeIdenticalTo(first))
		synctest.Wait() // add may return just before Start is called
		g.Expect(first.runs()).To(BeTrue())
		g.Expect(equal.starts()).To(BeZero())
		g.Expect(w.engagements.list()).To(HaveLen(1))
	})
}

func TestClusterLeavesWithItsLastOwner(t *testing.T) {
	for _, tc := range []struct {
		name string
		// first and second are the owners whose contexts end, in this order.
		first, second int
	}{
		{"the second owner ends last", 0, 1},
		{"the first owner ends last", 1, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				g := NewWithT(t)
				cl := newFake("host")
				var leave [2]context.CancelFunc
				for i, same := range []*fakeCluster{cl, newFake("host")} {
					var ctx context.Context
					ctx, leave[i] = context.WithCancel(w.ctx)
					g.Expect(w.AddOrReplace(ctx, "eu", same, w.engagements)).To(Succeed())
					g.Expect(w.AddOrReplace(ctx, "eu", newFake("host"), w.engagements)).To(Succeed(), "the same owner again")
				}
				leave[tc.first]()
				synctest.Wait()
				g.Expect(w.Get(t.Context(), "eu")).To(BeIdenticalTo(cl))
				g.Expect(w.engagements.live()).To(HaveExactElements(BeIdenticalTo(cl)))
				g.Expect(cl.runs()).To(BeTrue())

				leave[tc.second]()
				g.Expect(w.ClusterNames()).To(BeEmpty(), "at once")
				synctest.Wait()
				g.Expect(w.engagements.live()).To(BeEmpty())
				g.Expect(cl.runs()).To(BeFalse())
			})
		})
	}
}

// askedContext counts the calls of its AfterFunc. It does not end.
type askedContext struct {
	context.Context
	done  chan struct{}
	asked int
}

func (c *askedContext) Done() <-chan struct{} { return c.done }

func (c *askedContext) AfterFunc(func()) (stop func() bool) {
	c.asked++
	return func() bool { return true }
}

func TestOwnerIsAddedOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		g := NewWithT(t)
		ctx := &askedContext{Context: context.Background(), done: make(chan struct{})}
		for range 10 {
			g.Expect(w.AddOrReplace(ctx, "eu", newFake("host"), nil)).To(Succeed())
		}
		g.Expect(ctx.asked).To(Equal(1))
		w.Remove("eu")
	})
}

func TestWaitingCallDoesNotOwn(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		g := NewWithT(t)
		first := newFake("host")
		first.sync.shut()
		ctx, leave := context.WithCancel(w.ctx)
		one := inBackground(func() error { return w.AddOrReplace(ctx, "eu", first, w.engagements) })
		impatient, cancel := context.WithTimeout(w.ctx, time.Second)
		defer cancel()
		g.Expect(w.AddOrReplace(impatient, "eu", newFake("host"), nil)).To(MatchError(context.DeadlineExceeded))
		first.sync.open()
		g.Expect(<-one).To(Succeed())
		leave()
		synctest.Wait()
		g.Expect(w.ClusterNames()).To(BeEmpty())
		g.Expect(first.runs()).To(BeFalse())
	})
}

func TestEqualClustersOption(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		g := NewWithT(t)
		w.EqualClusters = func(a, b *fakeCluster) bool { return a.host[:2] == b.host[:2] }
		first, equal, other := newFake("eu-1"), newFake("eu-2"), newFake("us-1")
		g.Expect(w.addOrReplace("a", first)).To(Succeed())
		g.Expect(w.addOrReplace("a", equal)).To(Succeed())
		g.Expect(w.Get(t.Context(), "a")).To(BeIdenticalTo(first))
		g.Expect(w.addOrReplace("a", other)).To(Succeed())
		g.Expect(w.Get(t.Context(), "a")).To(BeIdenticalTo(other))
	})
}

func TestReplace(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		g := NewWithT(t)
		old, successor := newFake("old"), newFake("new")
		old.start.shut()
		g.Expect(w.addOrReplace("eu", old)).To(Succeed())

		result := inBackground(func() error { return w.addOrReplace("eu", successor) })
		g.Expect(w.engagements.live()).To(BeEmpty())
		g.Expect(successor.starts()).To(BeZero(), "the old one still runs")
		_, err := w.Get(t.Context(), "eu")
		g.Expect(err).To(MatchError(multicluster.ErrClusterNotReady))

		old.start.open()
		g.Expect(<-result).To(Succeed())
		g.Expect(old.runs()).To(BeFalse())
		g.Expect(w.Get(t.Context(), "eu")).To(BeIdenticalTo(successor))
		g.Expect(w.engagements.live()).To(HaveExactElements(BeIdenticalTo(successor)))
		g.Expect(w.reports.list()).To(BeEmpty())
	})
}

func TestReplacedClusterDoesNotStop(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		g := NewWithT(t)
		old, successor := newFake("old"), newFake("new")
		old.start.shut()
		g.Expect(w.addOrReplace("eu", old)).To(Succeed())

		began := time.Now()
		g.Expect(w.addOrReplace("eu", successor)).To(Succeed())
		g.Expect(time.Since(began)).To(Equal(10 * time.Second))
		g.Expect(w.reports.list()).To(HaveExactElements(MatchError(ContainSubstring("not stopped within 10s"))))

		// Its end does not affect the new one.
		old.start.open()
		synctest.Wait()
		g.Expect(w.Get(t.Context(), "eu")).To(BeIdenticalTo(successor))
		g.Expect(w.engagements.live()).To(HaveExactElements(BeIdenticalTo(successor)))
	})
}

func TestEqualClusterIsStarting(t *testing.T) {
	for _, tc := range []struct {
		name     string
		outcome  func(*world, *fakeCluster)
		replaced bool
	}{
		{
			name:    "and succeeds",
			outcome: func(_ *world, first *fakeCluster) { first.sync.open() },
		},
		{
			name:     "and its Start fails",
			outcome:  func(_ *world, first *fakeCluster) { first.fail <- errFake },
			replaced: true,
		},
		{
			name:     "and its caches do not sync in time",
			outcome:  func(*world, *fakeCluster) { time.Sleep(10 * time.Second) },
			replaced: true,
		},
		{
			name:     "and is removed",
			outcome:  func(w *world, _ *fakeCluster) { w.Remove("eu") },
			replaced: true,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				g := NewWithT(t)
				first, equal := newFake("host"), newFake("host")
				first.sync.shut()
				one := inBackground(func() error { return w.addOrReplace("eu", first) })
				two := inBackground(func() error { return w.addOrReplace("eu", equal) })
				g.Expect(equal.starts()).To(BeZero())

				tc.outcome(w, first)
				g.Expect(<-two).To(Succeed())
				remaining := first
				if tc.replaced {
					remaining = equal
					g.Expect(<-one).NotTo(Succeed())
				} else {
					g.Expect(<-one).To(Succeed())
				}
				g.Expect(w.Get(t.Context(), "eu")).To(BeIdenticalTo(remaining))
				g.Expect(w.engagements.live()).To(HaveExactElements(BeIdenticalTo(remaining)))
			})
		})
	}
}

func TestChainOfReplacements(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		g := NewWithT(t)
		first, second, third := newFake("1"), newFake("2"), newFake("3")
		first.start.shut()
		second.sync.shut()
		g.Expect(w.addOrReplace("eu", first)).To(Succeed())
		two := inBackground(func() error { return w.addOrReplace("eu", second) })
		three := inBackground(func() error { return w.addOrReplace("eu", third) })

		g.Expect(<-two).To(MatchError(ContainSubstring("replaced by another")))
		g.Expect(third.starts()).To(BeZero(), "the first still runs")
		first.start.open()
		g.Expect(<-three).To(Succeed())
		g.Expect(second.starts()).To(BeZero())
		g.Expect(w.Get(t.Context(), "eu")).To(BeIdenticalTo(third))
		g.Expect(w.engagements.live()).To(HaveExactElements(BeIdenticalTo(third)))
	})
}

func TestReplacementsRace(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		g := NewWithT(t)
		const rounds, racers = 20, 8
		for range rounds {
			var racing sync.WaitGroup
			all := make([]*fakeCluster, racers)
			for i := range all {
				all[i] = newFake(string(rune('a' + rand.IntN(4)))) // some are equal
				racing.Go(func() { _ = w.addOrReplace("eu", all[i]) })
			}
			racing.Wait()
			synctest.Wait()

			remaining, err := w.GetTyped(t.Context(), "eu")
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(remaining.runs()).To(BeTrue())
			g.Expect(w.engagements.live()).To(HaveExactElements(BeIdenticalTo(remaining)))
			for _, cl := range all {
				g.Expect(cl.runs()).To(Equal(cl == remaining))
				g.Expect(cl.starts()).To(BeNumerically("<=", 1))
			}
		}
	})
}

func TestReplacementRacesWithTheEnd(t *testing.T) {
	for _, tc := range []struct {
		name string
		end  func(*world, *fakeCluster, context.CancelFunc)
	}{
		{"its context ends", func(_ *world, _ *fakeCluster, leave context.CancelFunc) { leave() }},
		{"its Start fails", func(_ *world, old *fakeCluster, leave context.CancelFunc) { close(old.fail) }},
		{"it is replaced at the same time", func(w *world, _ *fakeCluster, _ context.CancelFunc) {
			_ = w.addOrReplace("eu", newFake("new"))
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				g := NewWithT(t)
				for range 20 {
					old := newFake("old")
					ctx, leave := context.WithCancel(w.ctx)
					g.Expect(w.AddOrReplace(ctx, "eu", old, w.engagements)).To(Succeed())
					result := make(chan error, 1)
					go func() { result <- w.addOrReplace("eu", newFake("new")) }()
					tc.end(w, old, leave)
					g.Expect(<-result).To(Succeed())
					synctest.Wait()

					remaining, err := w.GetTyped(t.Context(), "eu")
					g.Expect(err).NotTo(HaveOccurred())
					g.Expect(remaining.host).To(Equal("new"))
					g.Expect(w.engagements.live()).To(HaveExactElements(BeIdenticalTo(remaining)))
					leave()
				}
			})
		})
	}
}
