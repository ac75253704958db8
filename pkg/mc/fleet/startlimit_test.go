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

// lateStarts starts a fleet of n imaginary clusters with two places in the gate,
// and returns the limiters of the clusters, which are all engaged.
func lateStarts(t *testing.T, g *WithT, i imaginary, n int) (*world, []multicluster.StartLimiter) {
	t.Helper()
	reader := &imaginaryReader{ready: make(chan struct{})}
	reader.left.Store(int32(n))
	w := startWith(t, nil, func(e *engagements) multicluster.Aware {
		reader.engagements = e
		return reader
	}, withConnector(i), func(o *fleet.Options) {
		o.Connection.StartupLimit, o.Connection.ConnectTimeout, o.Connection.Probe.Interval = 2, 30*time.Second, -1
	})
	for c := range n {
		w.list.put(profile(fmt.Sprintf("c%d", c), "well"))
	}
	<-reader.ready
	synctest.Wait()
	limiters := make([]multicluster.StartLimiter, n)
	for c := range n {
		limiters[c] = multicluster.EngagementFrom(w.engagements.of(multicluster.ClusterName(fmt.Sprintf("fleet/c%d", c)))[0].ctx)
	}
	return w, limiters
}

// starts are starts of sources that have begun.
type starts struct {
	mu       sync.Mutex
	begun    []int // the clusters
	failed   map[int]error
	releases map[int][]func()
}

// begin begins the start of a source in a cluster, sooner or later.
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

// clusters returns those in which starts have begun, in order.
func (s *starts) clusters() []int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.begun)
}

// errors returns why starts in clusters have not begun.
func (s *starts) errors() map[int]error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.failed)
}

func newStarts() *starts { return &starts{failed: map[int]error{}, releases: map[int][]func(){}} }

func TestSourcesThatStartLateHaveThePlacesOfTheGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		w, limiters := lateStarts(t, g, imaginary{}, 4)
		s := newStarts()
		for _, c := range []int{0, 0, 1, 2, 3, 3} {
			s.begin(t.Context(), limiters, c)
		}
		g.Expect(s.clusters()).To(Equal([]int{0, 0, 1}), "a cluster has one place for all that starts in it")
		s.begin(t.Context(), limiters, 0)
		g.Expect(s.clusters()).To(Equal([]int{0, 0, 1, 0}), "whoever comes later has it, too")
		s.release(0)
		s.release(0)
		g.Expect(s.clusters()).To(HaveLen(4))
		s.release(0)
		g.Expect(s.clusters()[4:]).To(Equal([]int{2}), "the last one has given it back")
		s.release(1)
		g.Expect(s.clusters()[5:]).To(Equal([]int{3, 3}))
		s.begin(t.Context(), limiters, 0)
		g.Expect(s.clusters()).To(HaveLen(7), "it has to wait again")
		s.release(2)
		g.Expect(s.clusters()[7:]).To(Equal([]int{0}))
		w.stop()
		g.Expect(limiters[1].RequestStart().Wait(t.Context())).NotTo(Succeed())
	})
}

func TestAPlaceThatIsNotGivenBackIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		w, limiters := lateStarts(t, g, imaginary{}, 3)
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
		w.stop()
	})
}

func TestWhoDoesNotWaitForAPlaceAnyMoreTakesNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		w, limiters := lateStarts(t, g, imaginary{}, 4)
		s := newStarts()
		s.begin(t.Context(), limiters, 0)
		s.begin(t.Context(), limiters, 1)
		gone := errors.New("gone")
		ctx, cancel := context.WithCancelCause(t.Context())
		s.begin(ctx, limiters, 2)
		s.begin(t.Context(), limiters, 3)
		w.list.remove("c3")
		synctest.Wait()
		g.Expect(s.errors()).To(HaveKey(3), "its cluster has left")
		cancel(gone)
		synctest.Wait()
		g.Expect(s.errors()[2]).To(MatchError(gone))
		g.Expect(s.clusters()).To(Equal([]int{0, 1}))

		s.begin(t.Context(), limiters, 2)
		s.release(0)
		g.Expect(s.clusters()).To(Equal([]int{0, 1, 2}))
		w.list.remove("c1") // which has a place
		synctest.Wait()
		s.begin(t.Context(), limiters, 0)
		g.Expect(s.clusters()).To(Equal([]int{0, 1, 2, 0}))
		s.release(1)
		s.begin(t.Context(), limiters, 0)
		w.stop()
	})
}

func TestAClusterThatHangsKeepsNoPlaceForItsSources(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		var silent atomic.Bool
		w, limiters := lateStarts(t, g, imaginary{silent: &silent}, 4)
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
		g.Expect(s.clusters()).To(ContainElement(0), "it answers again")
		w.stop()
	})
}

// impatient starts a source in each cluster before it takes it.
type impatient struct{ *imaginaryReader }

func (i impatient) Engage(ctx context.Context, name multicluster.ClusterName, cl cluster.Cluster) error {
	start := multicluster.EngagementFrom(ctx).RequestStart()
	defer start.Release()
	if err := start.Wait(ctx); err != nil {
		return err
	}
	return i.imaginaryReader.Engage(ctx, name, cl)
}

func TestSourcesThatStartWithTheirClusterHaveItsPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		reader := impatient{&imaginaryReader{ready: make(chan struct{}), list: time.Second}}
		reader.left.Store(3)
		began := time.Now()
		w := startWith(t, nil, func(e *engagements) multicluster.Aware {
			reader.engagements = e
			return reader
		}, withConnector(imaginary{}), func(o *fleet.Options) { o.Connection.StartupLimit = 1 })
		for c := range 3 {
			w.list.put(profile(fmt.Sprintf("c%d", c), "well"))
		}
		<-reader.ready
		g.Expect(time.Since(began)).To(Equal(3*time.Second), "one after the other")
		w.stop()
	})
}
