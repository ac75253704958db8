// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package execplugin

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"

	"github.com/rollcall-dev/rollcall/pkg/credentials/internal/authn"
	"github.com/rollcall-dev/rollcall/pkg/credentials/internal/errdefs"
	"github.com/rollcall-dev/rollcall/pkg/credentials/plugin"
)

// holders are runs that have a slot until they are released.
type holders struct {
	slots *slots
	done  sync.WaitGroup

	mu       sync.Mutex
	released map[string][]func() // by name
	order    []string
}

// start has the runs ask for a slot, and returns once each has one or waits.
func (h *holders) start(ctx context.Context, count int, provider string, r rank) {
	for range count {
		h.done.Go(func() {
			release, err := h.slots.acquire(ctx, provider, r)
			if err != nil {
				return
			}
			name := fmt.Sprintf("%s/%d", provider, r)
			h.mu.Lock()
			defer h.mu.Unlock()
			h.released[name] = append(h.released[name], release)
			h.order = append(h.order, name)
		})
	}
	synctest.Wait()
}

// held returns how many runs have a slot.
func (h *holders) held(provider string, r rank) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.released[fmt.Sprintf("%s/%d", provider, r)])
}

// release ends one of the runs.
func (h *holders) release(provider string, r rank) {
	name := fmt.Sprintf("%s/%d", provider, r)
	h.mu.Lock()
	release := h.released[name][0]
	h.released[name] = h.released[name][1:]
	h.mu.Unlock()
	release()
	synctest.Wait()
}

func newHolders(slots int) *holders {
	return &holders{slots: newSlots(slots), released: map[string][]func(){}}
}

func TestSlotShares(t *testing.T) {
	for _, test := range []struct{ slots, renewals, firstRuns, lateRenewals, retries int }{
		{1, 1, 1, 1, 1}, {2, 2, 1, 1, 1}, {3, 3, 2, 1, 1}, {4, 4, 3, 2, 1}, {8, 8, 6, 4, 2}, {100, 100, 75, 50, 25},
	} {
		t.Run(fmt.Sprint(test.slots), func(t *testing.T) {
			for r, want := range []int{test.renewals, test.firstRuns, test.lateRenewals, test.retries} {
				synctest.Test(t, func(t *testing.T) {
					g := NewWithT(t)
					ctx, cancel := context.WithCancel(t.Context())
					h := newHolders(test.slots)
					h.start(ctx, 200, "a", rank(r))
					g.Expect(h.held("a", rank(r))).To(Equal(want))
					if want < test.slots {
						h.start(ctx, 200, "a", renewal)
						g.Expect(h.held("a", renewal)).To(Equal(test.slots-want), "what is left is for those that work")
					}
					h.start(ctx, 200, "b", retry)
					g.Expect(h.held("b", retry)).To(Equal(test.retries), "another provider has its own")
					cancel()
					h.done.Wait()
				})
			}
		})
	}
}

func TestSlotOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		ctx, cancel := context.WithCancel(t.Context())
		h := newHolders(8)
		h.start(ctx, 8, "a", renewal)
		for _, r := range []rank{retry, firstRun, lateRenewal, renewal, firstRun} {
			h.start(ctx, 1, "a", r)
		}
		for range 8 {
			h.release("a", renewal)
		}
		g.Expect(h.order[8:]).To(Equal([]string{"a/0", "a/1", "a/1", "a/2", "a/3"}))
		cancel()
		h.done.Wait()
	})
}

func TestSlotReturnedWithContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		s := newSlots(1)
		release, err := s.acquire(t.Context(), "a", firstRun)
		g.Expect(err).NotTo(HaveOccurred())
		ctx, cancel := context.WithCancel(t.Context())
		left := make(chan error)
		go func() {
			_, err := s.acquire(ctx, "a", firstRun)
			left <- err
		}()
		synctest.Wait()
		cancel()
		g.Expect(<-left).To(MatchError(authn.ErrNotRun))
		_, err = s.acquire(ctx, "a", firstRun)
		g.Expect(err).To(MatchError(authn.ErrNotRun), "one that has ended before does not take a slot")
		release()
		g.Expect(s.queues).To(BeEmpty())
		release, err = s.acquire(t.Context(), "a", firstRun)
		g.Expect(err).NotTo(HaveOccurred())
		release()
	})
}

// TestSlotInvariants has many runs come and go, some of which give up at the
// moment in which they get their slot.
func TestSlotInvariants(t *testing.T) {
	g := NewWithT(t)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	s := newSlots(4)
	var mu sync.Mutex
	running := map[string]*[ranks]int{"a": {}, "b": {}}
	var all sync.WaitGroup
	for i := range 64 {
		random := rand.New(rand.NewPCG(seed, uint64(i)))
		all.Go(func() {
			for range 200 {
				provider, r := []string{"a", "b"}[random.IntN(2)], rank(random.IntN(int(ranks)))
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(random.IntN(100))*time.Microsecond)
				release, err := s.acquire(ctx, provider, r)
				if err == nil {
					mu.Lock()
					running[provider][r]++
					sum := 0
					for i := ranks - 1; i >= 0; i-- {
						if sum += running[provider][i]; sum > s.limits[i] {
							t.Errorf("%d runs from rank %d on", sum, i)
						}
					}
					mu.Unlock()
					mu.Lock()
					running[provider][r]--
					mu.Unlock()
					release()
				}
				cancel()
			}
		})
	}
	all.Wait()
	g.Expect(s.queues).To(BeEmpty(), "all slots have been returned")
}

func TestRank(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		s := newSlots(8)
		valid := &authn.Credential{Expiry: time.Now().Add(5 * time.Minute)}
		expect := func(without, with rank) {
			t.Helper()
			g.Expect([]rank{s.rankOf("k", nil), s.rankOf("k", valid)}).To(Equal([]rank{without, with}))
		}
		expect(firstRun, renewal)
		s.note("k", time.Minute, nil)
		s.note("k", time.Millisecond, errors.New("exit code 1"))
		expect(firstRun, renewal)
		s.note("k", 2*time.Second, context.Canceled)
		expect(retry, lateRenewal)
		s.note("k", time.Millisecond, fmt.Errorf("%w: it has not returned from an earlier run", errdefs.ErrTimeout))
		expect(retry, lateRenewal)
		s.note("k", time.Millisecond, nil)
		expect(firstRun, renewal)

		s.note("k", 2*time.Second, errdefs.ErrTimeout)
		time.Sleep(6 * time.Minute)
		expect(retry, retry)
		time.Sleep(5 * time.Minute)
		s.note("other", 2*time.Second, errdefs.ErrTimeout)
		g.Expect(s.hung).To(HaveLen(1), "those of clusters that are gone are forgotten")
		expect(firstRun, renewal)
	})
}

// hanging is a plugin that gives a credential, or hangs.
type hanging struct{ healthy func() bool }

func (*hanging) Name() string    { return "hanging" }
func (*hanging) Version() string { return "v1" }
func (p *hanging) Credential(ctx context.Context, _ plugin.Request) (*plugin.Credential, error) {
	if p.healthy() {
		time.Sleep(100 * time.Millisecond)
		return &plugin.Credential{Token: "t1"}, nil
	}
	<-ctx.Done()
	return nil, ctx.Err()
}

// TestHungClustersOfTheSameProvider has 40 clusters hang for an hour while
// another one is added and renews its credential each minute.
func TestHungClustersOfTheSameProvider(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		runner := NewRunner(Options{
			Plugins: map[string]func() plugin.Plugin{
				"hung":    func() plugin.Plugin { return &hanging{func() bool { return false }} },
				"healthy": func() plugin.Plugin { return &hanging{func() bool { return true }} },
			},
			Timeout: 3 * time.Second, MaxConcurrentRuns: 8,
		})
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		for i := range 40 {
			hung := &Invocation{InProcess: "hung", ExecInfo: execInfo(i)}
			all.Go(func() {
				for ctx.Err() == nil {
					_, err := runner.Run(ctx, "p", hung, nil, func() {})
					g.Expect(err).To(HaveOccurred())
				}
			})
		}
		synctest.Wait()
		healthy := &Invocation{InProcess: "healthy", ExecInfo: execInfo(-1)}
		start := time.Now()
		last, err := runner.Run(ctx, "p", healthy, nil, func() {})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(time.Since(start)).To(BeNumerically("<", 40*4*time.Second/6), "the others have run once")
		for range 60 {
			time.Sleep(time.Minute)
			start := time.Now()
			last, err = runner.Run(ctx, "p", healthy, last, func() {})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(time.Since(start)).To(Equal(100*time.Millisecond), "it does not wait")

			start = time.Now()
			_, err = runner.Run(ctx, "p", &Invocation{InProcess: "healthy", ExecInfo: execInfo(start.Nanosecond())}, nil, func() {})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(time.Since(start)).To(Equal(100*time.Millisecond), "nor does a new cluster")
		}
		cancel()
		all.Wait()
	})
}

func execInfo(number int) string {
	return fmt.Sprintf(`{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","spec":{"cluster":{"config":{"n":%d}},"interactive":false}}`, number)
}
