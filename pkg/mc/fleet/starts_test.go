// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/rollcall-dev/rollcall/pkg/mc/fleet"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
)

// lateStarts returns a fleet with two startup slots and n engaged fake clusters, and
// the limiters of these clusters.
func lateStarts(t *testing.T, g *WithT, i slowConnector, n int) (*testEnv, []multicluster.StartLimiter) {
	t.Helper()
	reader := &listingAware{ready: make(chan struct{})}
	reader.left.Store(int32(n))
	env := startWith(t, nil, func(e *awareRecorder) multicluster.Aware {
		reader.awareRecorder = e
		return reader
	}, withConnector(i), func(o *fleet.Options) {
		o.Connection.StartupLimit, o.Connection.ConnectTimeout, o.Connection.Probe.Interval = 2, 30*time.Second, -1
	})
	for c := range n {
		env.source.put(profile(fmt.Sprintf("c%d", c), healthy))
	}
	<-reader.ready
	synctest.Wait()
	limiters := make([]multicluster.StartLimiter, n)
	for c := range n {
		limiters[c] = multicluster.EngagementFrom(env.aware.of(multicluster.ClusterName(fmt.Sprintf("fleet/c%d", c)))[0].ctx)
	}
	return env, limiters
}

// starts records the starts of sources.
type starts struct {
	mu       sync.Mutex
	begun    []int // the clusters
	failed   map[int]error
	releases map[int][]func()
}

// begin requests the start of a source in a cluster.
func (s *starts) begin(ctx context.Context, limiters []multicluster.StartLimiter, c int) {
	go func() {
		request := limiters[c].RequestStart()
		err := request.Wait(ctx)
		s.mu.Lock()
		defer s.mu.Unlock()
		if err != nil {
			request.Release()
			s.failed[c] = err
			return
		}
		s.begun = append(s.begun, c)
		s.releases[c] = append(s.releases[c], request.Release)
	}()
	synctest.Wait()
}

// release ends one start in the cluster.
func (s *starts) release(c int) {
	s.mu.Lock()
	release := s.releases[c][0]
	s.releases[c] = s.releases[c][1:]
	s.mu.Unlock()
	release()
	synctest.Wait()
}

// clusters returns the clusters in which sources have started, in order.
func (s *starts) clusters() []int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.begun)
}

// errors returns the errors of starts by cluster.
func (s *starts) errors() map[int]error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.failed)
}

func newStarts() *starts { return &starts{failed: map[int]error{}, releases: map[int][]func(){}} }

func TestLateSourcesNeedASlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		env, limiters := lateStarts(t, g, slowConnector{}, 4)
		s := newStarts()
		for _, c := range []int{0, 0, 1, 2, 3, 3} {
			s.begin(t.Context(), limiters, c)
		}
		g.Expect(s.clusters()).To(Equal([]int{0, 0, 1}), "the sources of a cluster share one slot")
		s.begin(t.Context(), limiters, 0)
		g.Expect(s.clusters()).To(Equal([]int{0, 0, 1, 0}), "also sources that come later")
		s.release(0)
		s.release(0)
		g.Expect(s.clusters()).To(HaveLen(4))
		s.release(0)
		g.Expect(s.clusters()[4:]).To(Equal([]int{2}), "the last share is released")
		s.release(1)
		g.Expect(s.clusters()[5:]).To(Equal([]int{3, 3}))
		s.begin(t.Context(), limiters, 0)
		g.Expect(s.clusters()).To(HaveLen(7), "it waits for another slot")
		s.release(2)
		g.Expect(s.clusters()[7:]).To(Equal([]int{0}))
		env.stop()
		g.Expect(limiters[1].RequestStart().Wait(t.Context())).NotTo(Succeed())
	})
}

func TestUnreleasedSlotTimesOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		env, limiters := lateStarts(t, g, slowConnector{}, 3)
		s := newStarts()
		for c := range 3 {
			s.begin(t.Context(), limiters, c)
		}
		time.Sleep(30*time.Second - 1)
		synctest.Wait()
		g.Expect(s.clusters()).To(Equal([]int{0, 1}))
		time.Sleep(1)
		synctest.Wait()
		g.Expect(s.clusters()).To(Equal([]int{0, 1, 2}))
		for c := range 3 {
			s.release(c)
		}
		env.stop()
	})
}

func TestEndedWaitTakesNoSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		env, limiters := lateStarts(t, g, slowConnector{}, 4)
		s := newStarts()
		s.begin(t.Context(), limiters, 0)
		s.begin(t.Context(), limiters, 1)
		canceled := errors.New("canceled")
		ctx, cancel := context.WithCancelCause(t.Context())
		s.begin(ctx, limiters, 2)
		s.begin(t.Context(), limiters, 3)
		env.source.remove("c3")
		synctest.Wait()
		g.Expect(s.errors()).To(HaveKey(3), "its cluster is disengaged")
		cancel(canceled)
		synctest.Wait()
		g.Expect(s.errors()[2]).To(MatchError(canceled))
		g.Expect(s.clusters()).To(Equal([]int{0, 1}))

		s.begin(t.Context(), limiters, 2)
		s.release(0)
		g.Expect(s.clusters()).To(Equal([]int{0, 1, 2}))
		env.source.remove("c1") // which has a slot
		synctest.Wait()
		s.begin(t.Context(), limiters, 0)
		g.Expect(s.clusters()).To(Equal([]int{0, 1, 2, 0}))
		s.release(1)
		s.begin(t.Context(), limiters, 0)
		env.stop()
	})
}

func TestHangingClusterLosesSlotOfSources(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		var silent atomic.Bool
		env, limiters := lateStarts(t, g, slowConnector{silent: &silent}, 4)
		s := newStarts()
		silent.Store(true)
		s.begin(t.Context(), limiters, 0)
		s.begin(t.Context(), limiters, 1)
		silent.Store(false)
		s.begin(t.Context(), limiters, 2)
		s.begin(t.Context(), limiters, 3)
		g.Expect(s.clusters()).To(BeEmpty())
		time.Sleep(time.Second)
		synctest.Wait()
		g.Expect(s.clusters()).To(ConsistOf(2, 3))
		time.Sleep(4 * time.Second)
		synctest.Wait()
		g.Expect(s.errors()[0]).To(MatchError(ContainSubstring("no response within 5s")))
		s.release(2)
		s.begin(t.Context(), limiters, 0)
		g.Expect(s.clusters()).To(ContainElement(0), "it responds again")
		env.stop()
	})
}

// earlyListingAware starts a source in each cluster before Engage returns.
type earlyListingAware struct{ *listingAware }

func (i earlyListingAware) Engage(ctx context.Context, name multicluster.ClusterName, cl cluster.Cluster) error {
	start := multicluster.EngagementFrom(ctx).RequestStart()
	defer start.Release()
	if err := start.Wait(ctx); err != nil {
		return err
	}
	return i.listingAware.Engage(ctx, name, cl)
}

func TestSourcesShareSlotOfConnect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		reader := earlyListingAware{&listingAware{ready: make(chan struct{}), list: time.Second}}
		reader.left.Store(3)
		began := time.Now()
		env := startWith(t, nil, func(e *awareRecorder) multicluster.Aware {
			reader.awareRecorder = e
			return reader
		}, withConnector(slowConnector{}), func(o *fleet.Options) { o.Connection.StartupLimit = 1 })
		for c := range 3 {
			env.source.put(profile(fmt.Sprintf("c%d", c), healthy))
		}
		<-reader.ready
		g.Expect(time.Since(began)).To(Equal(3*time.Second), "one cluster at a time")
		env.stop()
	})
}
