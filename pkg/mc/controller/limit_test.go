// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"

	mccontroller "github.com/rollcall-dev/rollcall/pkg/mc/controller"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
)

// limit is a StartLimiter with a number of slots.
type limit struct {
	slots chan struct{}

	mu                    sync.Mutex
	err                   error // of Wait
	asked, held, released int
	gaveUp                int // waits that ended with their context
	most                  int // held at a time
}

func newLimit(slots int) *limit {
	return &limit{slots: make(chan struct{}, slots)}
}

func (l *limit) count() (asked, held int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.asked, l.held
}

// limited returns a context for an engagement with the limit.
func limited(ctx context.Context, l *limit) context.Context {
	return multicluster.WithEngagement(ctx, multicluster.NewEngagement(l))
}

func (l *limit) RequestStart() multicluster.StartRequest {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asked++
	return &startRequest{limit: l}
}

// startRequest is one of a limit. The limit's lock guards it.
type startRequest struct {
	limit          *limit
	held, released bool
}

func (r *startRequest) Wait(ctx context.Context) error {
	l := r.limit
	if l.err != nil {
		return l.err
	}
	select {
	case l.slots <- struct{}{}:
	case <-ctx.Done():
		l.mu.Lock()
		defer l.mu.Unlock()
		l.gaveUp++
		return ctx.Err()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held++
	l.most = max(l.most, l.held)
	r.held = true
	return nil
}

func (r *startRequest) Release() {
	l := r.limit
	l.mu.Lock()
	defer l.mu.Unlock()
	if !r.released {
		l.released++
	}
	r.released = true
	if r.held {
		r.held = false
		l.held--
		<-l.slots
	}
}

func TestStartLimit(t *testing.T) {
	for _, tc := range []struct {
		name string
		// begin makes the sources start in the engaged clusters.
		begin func(t *testing.T, c mccontroller.Controller, src *fakeSource)
	}{
		{"when the controller starts", func(t *testing.T, c mccontroller.Controller, src *fakeSource) {
			NewWithT(t).Expect(c.MultiClusterWatch(src)).To(Succeed())
			start(t, c)
		}},
		{"when it is warmed up", func(t *testing.T, c mccontroller.Controller, src *fakeSource) {
			g := NewWithT(t)
			g.Expect(c.MultiClusterWatch(src)).To(Succeed())
			g.Expect(c.(interface{ Warmup(context.Context) error }).Warmup(t.Context())).To(Succeed())
		}},
		{"when a source is added late", func(t *testing.T, c mccontroller.Controller, src *fakeSource) {
			start(t, c)
			synctest.Wait()
			NewWithT(t).Expect(c.MultiClusterWatch(src)).To(Succeed())
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := NewWithT(t)
				c := newController(t, &recorder{}, mccontroller.Options{EnableWarmup: ptr.To(true)})
				src, limit := newFakeSource("a"), newLimit(3)
				names := make([]multicluster.ClusterName, 100)
				for i := range names {
					names[i] = multicluster.ClusterName(fmt.Sprint("c", i))
					src.unsynced(names[i])
					g.Expect(c.Engage(limited(t.Context(), limit), names[i], &fakeCluster{})).To(Succeed())
				}
				tc.begin(t, c, src)
				for left := len(names); left > 0; {
					synctest.Wait()
					_, held := limit.count()
					g.Expect(held).To(Equal(min(left, 3)), "as many as there are slots")
					running := 0
					for _, name := range names {
						if src.running(name) > 0 {
							running++
							src.syncOnce(name)
						}
					}
					left = len(names) - running
				}
				synctest.Wait()
				g.Expect(limit.most).To(Equal(3))
				g.Expect(limit.asked).To(Equal(100), "one request for each start")
				g.Expect(limit.released).To(Equal(100))
			})
		})
	}
}

func TestWaitForStartIsNoSyncTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		rec := &recorder{}
		c := newController(t, rec, mccontroller.Options{CacheSyncTimeout: time.Minute})
		src, limit := newFakeSource("a"), newLimit(1)
		limit.slots <- struct{}{}
		g.Expect(c.MultiClusterWatch(src)).To(Succeed())
		start(t, c)
		g.Expect(c.Engage(limited(t.Context(), limit), "eu", &fakeCluster{})).To(Succeed())
		time.Sleep(time.Hour)
		g.Expect(statusOf(c, "eu").LastError).To(BeEmpty())
		g.Expect(src.attempts("eu")).To(Equal(1))
		<-limit.slots
		synctest.Wait()
		g.Expect(rec.seen()).To(Equal([]string{"eu/a"}))
	})
}

func TestWaitForStartEndsWithTheEngagement(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		c := newController(t, &recorder{}, mccontroller.Options{})
		src, limit := newFakeSource("a"), newLimit(1)
		limit.slots <- struct{}{}
		g.Expect(c.MultiClusterWatch(src)).To(Succeed())
		start(t, c)
		ctx, leave := context.WithCancel(t.Context())
		g.Expect(c.Engage(limited(ctx, limit), "eu", &fakeCluster{})).To(Succeed())
		synctest.Wait()
		// Another cluster does not wait.
		g.Expect(c.Engage(t.Context(), "us", &fakeCluster{})).To(Succeed())
		synctest.Wait()
		g.Expect(src.running("us")).To(Equal(1))

		leave()
		synctest.Wait()
		g.Expect(limit.gaveUp).To(Equal(1))
		g.Expect(limit.asked).To(Equal(1))
		g.Expect(src.running("eu")).To(BeZero())
	})
}

func TestFailedStartIsReleased(t *testing.T) {
	for _, tc := range []struct {
		name  string
		fails func(*fakeSource, *limit)
	}{
		{"the source fails", func(s *fakeSource, _ *limit) { s.fail("eu", atStart) }},
		{"the source does not sync", func(s *fakeSource, _ *limit) { s.unsynced("eu") }},
		{"Wait fails", func(_ *fakeSource, l *limit) { l.err = errors.New("no start today") }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := NewWithT(t)
				c := newController(t, &recorder{}, mccontroller.Options{CacheSyncTimeout: time.Millisecond})
				src, limit := newFakeSource("a"), newLimit(1)
				tc.fails(src, limit)
				g.Expect(c.MultiClusterWatch(src)).To(Succeed())
				start(t, c)
				g.Expect(c.Engage(limited(t.Context(), limit), "eu", &fakeCluster{})).To(Succeed())
				time.Sleep(10*time.Minute + 10*time.Millisecond)
				asked, held := limit.count()
				g.Expect(held).To(BeZero())
				g.Expect(asked).To(BeNumerically(">", 5), "each retry requests a start")
				g.Expect(statusOf(c, "eu").LastError).NotTo(BeEmpty())
			})
		})
	}
}

func TestStartOfUnwatchedSourceIsReleased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		c := newController(t, &recorder{}, mccontroller.Options{})
		src, limit := newFakeSource("a"), newLimit(1)
		src.fail("eu", notWatched)
		g.Expect(c.MultiClusterWatch(src)).To(Succeed())
		start(t, c)
		g.Expect(c.Engage(limited(t.Context(), limit), "eu", &fakeCluster{})).To(Succeed())
		synctest.Wait()
		g.Expect(limit.most).To(BeZero())
		g.Expect(limit.released).To(Equal(limit.asked))
		g.Expect(statusOf(c, "eu").UnsyncedSources).To(BeZero())
	})
}

// The cluster holds a startup slot until Engage returns, which its sources share.
func TestStartIsRequestedInEngage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		c := newController(t, &recorder{}, mccontroller.Options{})
		for range 2 {
			g.Expect(c.MultiClusterWatch(newFakeSource("a"))).To(Succeed())
		}
		limit := newLimit(0)
		g.Expect(c.Engage(limited(t.Context(), limit), "before", &fakeCluster{})).To(Succeed())
		g.Expect(limit.asked).To(BeZero(), "sources have not started yet")
		start(t, c)
		synctest.Wait()
		g.Expect(limit.asked).To(Equal(2))

		g.Expect(c.Engage(limited(t.Context(), limit), "eu", &fakeCluster{})).To(Succeed())
		asked, _ := limit.count()
		g.Expect(asked).To(Equal(4))
	})
}
