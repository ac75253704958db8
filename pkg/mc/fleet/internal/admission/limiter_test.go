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
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/rollcall-dev/rollcall/pkg/mc/fleet/internal/admission"
)

func TestConfirmedSlotIsKept(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, g *WithT, l *admission.Limiter) {
		slot := acquire(t, g, l)
		time.Sleep(time.Hour)
		g.Expect(free(l, 1)).To(BeZero())
		g.Expect(slot.Confirm(t.Context())).To(Succeed(), "once more")
		slot.Release()
		slot.Release()
		other := acquire(t, g, l)
		slot.Release()
		g.Expect(free(l, 1)).To(BeZero(), "another cluster has it")
		other.Release()
	})
}

func TestUnconfirmedSlotExpires(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, g *WithT, l *admission.Limiter) {
		slot, err := l.Acquire(t.Context(), admission.New, nil)
		g.Expect(err).NotTo(HaveOccurred())
		time.Sleep(time.Second - 1)
		synctest.Wait()
		g.Expect(free(l, 1)).To(BeZero())
		time.Sleep(1)
		synctest.Wait()
		g.Expect(free(l, 1)).To(Equal(1))
		g.Expect(slot.Confirm(t.Context())).To(Succeed(), "it gets another one")
		g.Expect(free(l, 1)).To(BeZero())
		time.Sleep(time.Hour)
		g.Expect(free(l, 1)).To(BeZero())
		slot.Release()
	})
}

func TestLimiterClock(t *testing.T) {
	g := NewWithT(t)
	clock := clocktesting.NewFakeClock(time.Now())
	l := admission.NewLimiter(1, clock)
	slot, err := l.Acquire(t.Context(), admission.New, nil)
	g.Expect(err).NotTo(HaveOccurred())
	clock.Step(time.Second)
	g.Eventually(func() int { return free(l, 1) }).Should(Equal(1))
	slot.Release()
	slot = acquire(t, g, l)
	g.Expect(clock.HasWaiters()).To(BeFalse(), "timers after a response")

	starts, share := admission.NewStarts(t.Context(), l, slot, time.Minute, responds)
	clock.Step(time.Minute)
	g.Eventually(starts.HasSlot).Should(BeFalse())
	share.Release()
	share = starts.RequestStart()
	g.Expect(share.Wait(t.Context())).To(Succeed())
	g.Expect(clock.HasWaiters()).To(BeTrue())
	share.Release()
	g.Expect(clock.HasWaiters()).To(BeFalse(), "timers after the last share")
	starts.Close()
}

// lateClock has the functions that a test may call when their timers have been
// stopped.
type lateClock struct {
	clock.RealClock
	calls []func()
}

func (c *lateClock) AfterFunc(_ time.Duration, f func()) clock.Timer {
	c.calls = append(c.calls, f)
	return c.NewTimer(0)
}

func TestTimerThatIsStoppedTooLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		clock := &lateClock{}
		l := admission.NewLimiter(1, clock)
		starts, share := admission.NewStarts(t.Context(), l, acquire(t, g, l), time.Minute, responds)
		clock.calls[0]()
		synctest.Wait()
		g.Expect(free(l, 1)).To(BeZero(), "the cluster has responded")
		share.Release()
		next := starts.RequestStart()
		g.Expect(next.Wait(t.Context())).To(Succeed())
		last := len(clock.calls) - 1
		for _, call := range clock.calls[:last] {
			call()
		}
		synctest.Wait()
		g.Expect(starts.HasSlot()).To(BeTrue(), "these are timers of the slots before")
		clock.calls[last]()
		synctest.Wait()
		g.Expect(starts.HasSlot()).To(BeFalse())
		next.Release()
		starts.Close()
	})
}

func TestPriorities(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, g *WithT, l *admission.Limiter) {
		expired, err := l.Acquire(t.Context(), admission.New, nil)
		g.Expect(err).NotTo(HaveOccurred())
		time.Sleep(time.Second)
		synctest.Wait()
		first := acquire(t, g, l)

		order := make(chan string, 7)
		for _, waiter := range []struct {
			name     string
			priority admission.Priority
		}{
			{"failed", admission.Failed},
			{"failed, later", admission.Failed},
			{"new", admission.New},
			{"new, later", admission.New},
			{"responded", admission.Responded},
			{"engaged", admission.Engaged},
			{"engaged, later", admission.Engaged},
		} {
			begin(func() (err error) {
				slot := expired
				if waiter.priority == admission.Responded {
					err = slot.Confirm(t.Context())
				} else {
					slot, err = l.Acquire(t.Context(), waiter.priority, nil)
				}
				order <- waiter.name
				slot.Release()
				return err
			})
		}
		first.Release()
		for _, want := range []string{"engaged", "engaged, later", "responded", "new", "new, later", "failed", "failed, later"} {
			g.Expect(<-order).To(Equal(want))
		}
	})
}

func TestOvertakenSlotIsLost(t *testing.T) {
	inBubble(t, 2, func(t *testing.T, g *WithT, l *admission.Limiter) {
		for range 10 {
			acquire(t, g, l).Release() // before
		}
		silent, err := l.Acquire(t.Context(), admission.New, nil)
		g.Expect(err).NotTo(HaveOccurred())
		for range 4 {
			slot := acquire(t, g, l)
			g.Expect(slot.Confirm(t.Context())).To(Succeed(), "once more, which does not count")
			slot.Release()
		}
		g.Expect(free(l, 2)).To(Equal(1), "two clusters for each slot have responded")
		acquire(t, g, l).Release()
		g.Expect(free(l, 2)).To(Equal(2), "another one has responded")
		g.Expect(silent.Confirm(t.Context())).To(Succeed())
		g.Expect(free(l, 2)).To(Equal(1))
		silent.Release()
	})
}

func TestAcquireEndsWithContext(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, g *WithT, l *admission.Limiter) {
		reason := errors.New("profile removed")
		expired, err := l.Acquire(t.Context(), admission.New, nil)
		g.Expect(err).NotTo(HaveOccurred())
		time.Sleep(time.Second)
		synctest.Wait()
		slot := acquire(t, g, l)
		ctx, cancel := context.WithCancelCause(t.Context())
		acquired := begin(func() error {
			_, err := l.Acquire(ctx, admission.New, nil)
			return err
		})
		confirmed := begin(func() error { return expired.Confirm(ctx) })
		cancel(reason)
		g.Expect(<-acquired).To(MatchError(reason))
		g.Expect(<-confirmed).To(MatchError(reason))
		slot.Release()
	})
}

func TestNoSlotIsLeftByCancel(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, g *WithT, l *admission.Limiter) {
		for range 100 {
			slot := acquire(t, g, l)
			ctx, cancel := context.WithCancel(t.Context())
			begin(func() error {
				slot, err := l.Acquire(ctx, admission.New, nil)
				if err == nil {
					slot.Release()
				}
				return err
			})
			go cancel()
			slot.Release() // at the same time
			synctest.Wait()
			g.Expect(free(l, 1)).To(Equal(1))
		}
	})
}

func TestQueuedIsCalledWhenWaiting(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, g *WithT, l *admission.Limiter) {
		var first *admission.Slot
		var queued atomic.Int32
		first = acquire(t, g, l)
		slot, err := l.Acquire(t.Context(), admission.New, func() {
			queued.Add(1)
			first.Release() // no lock is held
		})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(queued.Load()).To(BeEquivalentTo(1))
		time.Sleep(time.Second)
		synctest.Wait()
		first = acquire(t, g, l)
		g.Expect(slot.Confirm(t.Context())).To(Succeed())
		g.Expect(queued.Load()).To(BeEquivalentTo(2), "in Confirm")
		slot.Release()
	})
}

func TestReleasedSlotIsNotConfirmed(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, g *WithT, l *admission.Limiter) {
		slot, err := l.Acquire(t.Context(), admission.New, nil)
		g.Expect(err).NotTo(HaveOccurred())
		time.Sleep(time.Second)
		synctest.Wait()
		other := acquire(t, g, l)
		confirmed := begin(func() error { return slot.Confirm(t.Context()) })
		g.Expect(confirmed).NotTo(Receive())
		slot.Release()
		g.Expect(<-confirmed).To(MatchError(admission.ErrReleased))
		other.Release()
		g.Expect(slot.Confirm(t.Context())).To(MatchError(admission.ErrReleased))
	})
}

func TestNegativeSizeIsNoBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := admission.NewLimiter(-1, clock.RealClock{})
		for range 100 {
			slot, err := l.Acquire(t.Context(), admission.New, func() { t.Error("it has to wait") })
			NewWithT(t).Expect(err).NotTo(HaveOccurred())
			time.Sleep(100 * time.Millisecond)
			defer slot.Release()
			defer func() { NewWithT(t).Expect(slot.Confirm(t.Context())).To(Succeed()) }()
		}
	})
}
