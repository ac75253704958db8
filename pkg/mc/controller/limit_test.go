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

// limit lets a number of sources start at a time.
type limit struct {
	places chan struct{}

	mu                    sync.Mutex
	asked, held, released int
	given                 int // up by those who waited
	most                  int
}

func newLimit(places int) *limit {
	return &limit{places: make(chan struct{}, places)}
}

func (l *limit) count() (asked, held int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.asked, l.held
}

// limitedCluster is a cluster that has a limit.
type limitedCluster struct {
	fakeCluster
	limit *limit
	err   error
}

func (c *limitedCluster) LimitStart(ctx context.Context) (func(), error) {
	l := c.limit
	l.mu.Lock()
	l.asked++
	l.mu.Unlock()
	if c.err != nil {
		return nil, c.err
	}
	select {
	case l.places <- struct{}{}:
	case <-ctx.Done():
		l.mu.Lock()
		defer l.mu.Unlock()
		l.given++
		return nil, ctx.Err()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held++
	l.most = max(l.most, l.held)
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.held--
		l.released++
		<-l.places
	}, nil
}

func TestSourcesOfManyClustersStartNoFasterThanTheirLimit(t *testing.T) {
	for _, tc := range []struct {
		name string
		// begin has sources start in clusters that have been engaged.
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
					g.Expect(c.Engage(t.Context(), names[i], &limitedCluster{limit: limit})).To(Succeed())
				}
				tc.begin(t, c, src)
				for left := len(names); left > 0; {
					synctest.Wait()
					_, held := limit.count()
					g.Expect(held).To(Equal(min(left, 3)), "as many as may")
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
				g.Expect(limit.asked).To(Equal(100), "once for each start")
				g.Expect(limit.released).To(Equal(100))
			})
		})
	}
}

func TestTheWaitForAStartIsNotTakenForASyncThatDoesNotCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		rec := &recorder{}
		c := newController(t, rec, mccontroller.Options{CacheSyncTimeout: time.Minute})
		src, limit := newFakeSource("a"), newLimit(1)
		limit.places <- struct{}{}
		g.Expect(c.MultiClusterWatch(src)).To(Succeed())
		start(t, c)
		g.Expect(c.Engage(t.Context(), "eu", &limitedCluster{limit: limit})).To(Succeed())
		time.Sleep(time.Hour)
		g.Expect(statusOf(c, "eu").LastError).To(BeEmpty())
		g.Expect(src.attempts("eu")).To(Equal(1))
		<-limit.places
		synctest.Wait()
		g.Expect(rec.seen()).To(Equal([]string{"eu/a"}))
	})
}

func TestTheWaitForAStartEndsWithTheEngagement(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		c := newController(t, &recorder{}, mccontroller.Options{})
		src, limit := newFakeSource("a"), newLimit(1)
		limit.places <- struct{}{}
		g.Expect(c.MultiClusterWatch(src)).To(Succeed())
		start(t, c)
		ctx, leave := context.WithCancel(t.Context())
		cl := &limitedCluster{limit: limit}
		g.Expect(c.Engage(ctx, "eu", cl)).To(Succeed())
		synctest.Wait()
		// Nobody else waits with it.
		g.Expect(c.Engage(t.Context(), "us", &fakeCluster{})).To(Succeed())
		synctest.Wait()
		g.Expect(src.running("us")).To(Equal(1))

		leave()
		synctest.Wait()
		g.Expect(limit.given).To(Equal(1))
		g.Expect(limit.asked).To(Equal(1))
		g.Expect(src.running("eu")).To(BeZero())
	})
}

func TestAStartThatFailsMakesRoomForOthers(t *testing.T) {
	for _, tc := range []struct {
		name  string
		fails func(*fakeSource, *limitedCluster)
	}{
		{"because of the source", func(s *fakeSource, _ *limitedCluster) { s.fail("eu", atStart) }},
		{"because it does not sync", func(s *fakeSource, _ *limitedCluster) { s.unsynced("eu") }},
		{"because of the limit", func(_ *fakeSource, c *limitedCluster) { c.err = errors.New("no start today") }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := NewWithT(t)
				c := newController(t, &recorder{}, mccontroller.Options{CacheSyncTimeout: time.Millisecond})
				src, cl := newFakeSource("a"), &limitedCluster{limit: newLimit(1)}
				tc.fails(src, cl)
				g.Expect(c.MultiClusterWatch(src)).To(Succeed())
				start(t, c)
				g.Expect(c.Engage(t.Context(), "eu", cl)).To(Succeed())
				time.Sleep(10*time.Minute + 10*time.Millisecond)
				asked, held := cl.limit.count()
				g.Expect(held).To(BeZero())
				g.Expect(asked).To(BeNumerically(">", 5), "it is asked before each try")
				g.Expect(statusOf(c, "eu").LastError).NotTo(BeEmpty())
			})
		})
	}
}

func TestNoStartIsAskedForWhereASourceIsNotWatched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		c := newController(t, &recorder{}, mccontroller.Options{})
		src, cl := newFakeSource("a"), &limitedCluster{limit: newLimit(1)}
		src.fail("eu", notWatched)
		g.Expect(c.MultiClusterWatch(src)).To(Succeed())
		start(t, c)
		g.Expect(c.Engage(t.Context(), "eu", cl)).To(Succeed())
		synctest.Wait()
		g.Expect(cl.limit.asked).To(BeZero())
		g.Expect(statusOf(c, "eu").UnsyncedSources).To(BeZero())
	})
}
