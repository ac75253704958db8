// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package admission_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"

	"github.com/rollcall-dev/rollcall/pkg/mc/fleet/internal/admission"
)

// wait begins to wait for the share.
func wait(t *testing.T, share *admission.Share) chan error {
	t.Helper()
	return begin(func() error { return share.Wait(t.Context()) })
}

func TestLastShareFreesTheSlot(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, g *WithT, l *admission.Limiter) {
		starts, engaging := engage(t, g, l, nil)
		first, second := starts.RequestStart(), starts.RequestStart()
		for _, share := range []*admission.Share{engaging, first, second} {
			g.Expect(share.Wait(t.Context())).To(Succeed())
		}
		engaging.Release()
		first.Release()
		first.Release()
		g.Expect(starts.HasSlot()).To(BeTrue())
		g.Expect(free(l, 1)).To(BeZero())
		second.Release()
		g.Expect(starts.HasSlot()).To(BeFalse())
		g.Expect(free(l, 1)).To(Equal(1))
		starts.Close()
	})
}

func TestLateSourcesShareASlot(t *testing.T) {
	inBubble(t, 2, func(t *testing.T, g *WithT, l *admission.Limiter) {
		var probes atomic.Int32
		probe := func(context.Context) error {
			probes.Add(1)
			return nil
		}
		eu, us, asia := engaged(t, g, l, probe), engaged(t, g, l, probe), engaged(t, g, l, probe)
		inEU, alsoInEU, inUS := eu.RequestStart(), eu.RequestStart(), us.RequestStart()
		for _, share := range []*admission.Share{inEU, alsoInEU, inUS} {
			g.Expect(share.Wait(t.Context())).To(Succeed())
		}
		g.Expect(probes.Load()).To(BeEquivalentTo(2), "one for each cluster")
		inAsia, alsoInAsia := asia.RequestStart(), asia.RequestStart()
		started, alsoStarted := wait(t, inAsia), wait(t, alsoInAsia)
		lateInEU := eu.RequestStart()
		g.Expect(lateInEU.Wait(t.Context())).To(Succeed(), "the cluster holds its slot")
		inEU.Release()
		alsoInEU.Release()
		synctest.Wait()
		g.Expect(started).NotTo(Receive())
		lateInEU.Release()
		g.Expect(<-started).To(Succeed())
		g.Expect(<-alsoStarted).To(Succeed())
		again := eu.RequestStart()
		startedAgain := wait(t, again)
		g.Expect(startedAgain).NotTo(Receive(), "it has to wait again")
		inUS.Release()
		g.Expect(<-startedAgain).To(Succeed())
		for _, share := range []*admission.Share{again, inAsia, alsoInAsia} {
			share.Release()
		}
		for _, starts := range []*admission.Starts{eu, us, asia} {
			starts.Close()
		}
	})
}

func TestSlotIsLostAtTheTimeout(t *testing.T) {
	for name, late := range map[string]bool{"the first slot": false, "a later slot": true} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, 1, func(t *testing.T, g *WithT, l *admission.Limiter) {
				starts, share := engage(t, g, l, responds)
				if late {
					share.Release()
					share = starts.RequestStart()
					g.Expect(share.Wait(t.Context())).To(Succeed())
				}
				other := begin(func() error {
					slot, err := l.Acquire(t.Context(), admission.New, nil)
					if err == nil {
						slot.Release()
					}
					return err
				})
				time.Sleep(time.Minute - 1)
				synctest.Wait()
				g.Expect(starts.HasSlot()).To(BeTrue())
				g.Expect(other).NotTo(Receive())
				time.Sleep(1)
				g.Expect(<-other).To(Succeed())
				g.Expect(starts.HasSlot()).To(BeFalse())
				g.Expect(share.Wait(t.Context())).To(Succeed(), "its source goes on")

				next := starts.RequestStart()
				g.Expect(next.Wait(t.Context())).To(Succeed())
				share.Release()
				g.Expect(starts.HasSlot()).To(BeTrue(), "the share was one of the slot before")
				next.Release()
				starts.Close()
			})
		})
	}
}

func TestWaitEndsWithContext(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, g *WithT, l *admission.Limiter) {
		reason := errors.New("source stopped")
		slot, starts := engaged(t, g, l, responds), engaged(t, g, l, responds)
		blocking := slot.RequestStart()
		g.Expect(blocking.Wait(t.Context())).To(Succeed())
		ctx, cancel := context.WithCancelCause(t.Context())
		stopped, other := starts.RequestStart(), starts.RequestStart()
		stoppedErr := begin(func() error { return stopped.Wait(ctx) })
		started := wait(t, other)
		cancel(reason)
		g.Expect(<-stoppedErr).To(MatchError(reason))
		stopped.Release()
		blocking.Release()
		g.Expect(<-started).To(Succeed())
		other.Release()
		slot.Close()
		starts.Close()
	})
}

func TestReleaseBeforeWait(t *testing.T) {
	t.Run("while the slot is held", func(t *testing.T) {
		inBubble(t, 1, func(t *testing.T, g *WithT, l *admission.Limiter) {
			starts, engaging := engage(t, g, l, responds)
			for range 20 {
				share := starts.RequestStart()
				share.Release()
				g.Expect(share.Wait(t.Context())).To(MatchError(admission.ErrReleased))
			}
			g.Expect(starts.HasSlot()).To(BeTrue())
			engaging.Release()
			starts.Close()
		})
	})
	t.Run("while the slot is waited for", func(t *testing.T) {
		inBubble(t, 1, func(t *testing.T, g *WithT, l *admission.Limiter) {
			starts := engaged(t, g, l, responds)
			blocking := acquire(t, g, l)
			first, last := starts.RequestStart(), starts.RequestStart()
			firstErr, lastErr := wait(t, first), wait(t, last)
			g.Expect(starts.HasSlot()).To(BeFalse())
			first.Release()
			g.Expect(<-firstErr).To(MatchError(admission.ErrReleased))
			g.Expect(lastErr).NotTo(Receive())
			last.Release()
			g.Expect(<-lastErr).To(MatchError(admission.ErrReleased))
			blocking.Release()
			synctest.Wait()
			g.Expect(starts.HasSlot()).To(BeFalse(), "no one wants it")
			g.Expect(free(l, 1)).To(Equal(1))
			starts.Close()
		})
	})
	t.Run("while the cluster is probed", func(t *testing.T) {
		inBubble(t, 1, func(t *testing.T, g *WithT, l *admission.Limiter) {
			starts := engaged(t, g, l, hangs)
			share := starts.RequestStart()
			synctest.Wait()
			share.Release()
			synctest.Wait()
			g.Expect(free(l, 1)).To(Equal(1))
			starts.Close()
		})
	})
}

func TestClose(t *testing.T) {
	t.Run("frees the slot", func(t *testing.T) {
		inBubble(t, 1, func(t *testing.T, g *WithT, l *admission.Limiter) {
			starts, engaging := engage(t, g, l, responds)
			starts.Close()
			g.Expect(starts.HasSlot()).To(BeFalse())
			g.Expect(free(l, 1)).To(Equal(1))
			starts.Close()
			engaging.Release()
		})
	})
	t.Run("ends the wait for a slot", func(t *testing.T) {
		inBubble(t, 1, func(t *testing.T, g *WithT, l *admission.Limiter) {
			starts := engaged(t, g, l, responds)
			blocking := acquire(t, g, l)
			err := wait(t, starts.RequestStart())
			starts.Close()
			g.Expect(<-err).To(MatchError(admission.ErrClosed))
			blocking.Release()
		})
	})
	t.Run("waits for the probe", func(t *testing.T) {
		inBubble(t, 1, func(t *testing.T, g *WithT, l *admission.Limiter) {
			starts := engaged(t, g, l, func(ctx context.Context) error {
				<-ctx.Done()
				time.Sleep(time.Second)
				return nil
			})
			share := starts.RequestStart()
			err := wait(t, share)
			began := time.Now()
			starts.Close()
			g.Expect(time.Since(began)).To(Equal(time.Second))
			g.Expect(<-err).To(MatchError(admission.ErrClosed))
		})
	})
	t.Run("fails later requests", func(t *testing.T) {
		inBubble(t, 1, func(t *testing.T, g *WithT, l *admission.Limiter) {
			starts := engaged(t, g, l, responds)
			starts.Close()
			share := starts.RequestStart()
			g.Expect(share.Wait(t.Context())).To(MatchError(admission.ErrClosed))
			share.Release()
		})
	})
}

func TestEngagementEnd(t *testing.T) {
	inBubble(t, 2, func(t *testing.T, g *WithT, l *admission.Limiter) {
		reason := errors.New("identity changed")
		ctx, cancel := context.WithCancelCause(t.Context())
		holding, share := admission.NewStarts(ctx, l, acquire(t, g, l), time.Minute, responds)
		waiting, engaging := admission.NewStarts(ctx, l, acquire(t, g, l), time.Minute, responds)
		engaging.Release()
		blocking := acquire(t, g, l)
		err := wait(t, waiting.RequestStart())
		cancel(reason)
		g.Expect(<-err).To(MatchError(reason))
		synctest.Wait()
		g.Expect(free(l, 2)).To(Equal(1), "before Close")
		g.Expect(holding.RequestStart().Wait(t.Context())).To(MatchError(reason))
		share.Release()
		holding.Close()
		waiting.Close()
		blocking.Release()
	})
}

func TestHangingClusterHoldsNoSlot(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, g *WithT, l *admission.Limiter) {
		var silent atomic.Bool
		silent.Store(true)
		noResponse := errors.New("no response")
		hanging := engaged(t, g, l, func(ctx context.Context) error {
			if !silent.Load() {
				return nil
			}
			select {
			case <-time.After(5 * time.Second):
				return noResponse
			case <-ctx.Done():
				return ctx.Err()
			}
		})
		healthy := engaged(t, g, l, responds)
		began := time.Now()
		first, second := hanging.RequestStart(), hanging.RequestStart()
		firstErr, secondErr := wait(t, first), wait(t, second)
		share := healthy.RequestStart()
		g.Expect(share.Wait(t.Context())).To(Succeed())
		g.Expect(time.Since(began)).To(Equal(time.Second))
		g.Expect(<-firstErr).To(MatchError(noResponse))
		g.Expect(<-secondErr).To(MatchError(noResponse))
		g.Expect(time.Since(began)).To(Equal(5 * time.Second))
		share.Release()

		silent.Store(false)
		again := hanging.RequestStart()
		first.Release()
		second.Release()
		g.Expect(again.Wait(t.Context())).To(Succeed(), "it responds again")
		again.Release()
		hanging.Close()
		healthy.Close()
	})
}
