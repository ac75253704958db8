// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package admission_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	"go.uber.org/goleak"
	"k8s.io/utils/clock"

	"github.com/rollcall-dev/rollcall/pkg/mc/fleet/internal/admission"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

// inBubble runs the test in virtual time, with a limiter of that size. All slots
// must be free at its end.
func inBubble(t *testing.T, size int, test func(t *testing.T, g *WithT, l *admission.Limiter)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		l := admission.NewLimiter(size, clock.RealClock{})
		test(t, g, l)
		synctest.Wait()
		g.Expect(free(l, size)).To(Equal(size), "free slots at the end")
	})
}

// free returns how many slots can be acquired without a wait, up to the limit.
func free(l *admission.Limiter, limit int) int {
	var slots []*admission.Slot
	for range limit {
		ctx, cancel := context.WithCancel(context.Background())
		slot, err := l.Acquire(ctx, admission.Failed, cancel)
		cancel()
		if err != nil {
			break
		}
		slots = append(slots, slot)
	}
	for _, slot := range slots {
		slot.Release()
	}
	return len(slots)
}

// acquire returns a slot that is free, confirmed.
func acquire(t *testing.T, g *WithT, l *admission.Limiter) *admission.Slot {
	t.Helper()
	slot, err := l.Acquire(t.Context(), admission.New, func() { t.Error("no slot is free") })
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(slot.Confirm(t.Context())).To(Succeed())
	return slot
}

// begin runs the function in a goroutine until it has returned or waits.
func begin(f func() error) (result chan error) {
	result = make(chan error, 1)
	go func() { result <- f() }()
	synctest.Wait()
	return result
}

func responds(context.Context) error { return nil }

func hangs(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

// engage returns the Starts of a cluster, with the timeout of a minute, and the
// share of the goroutine that engages it.
func engage(t *testing.T, g *WithT, l *admission.Limiter, probe func(context.Context) error) (*admission.Starts, *admission.Share) {
	t.Helper()
	return admission.NewStarts(t.Context(), l, acquire(t, g, l), time.Minute, probe)
}

// engaged returns the Starts of a cluster whose first slot is released.
func engaged(t *testing.T, g *WithT, l *admission.Limiter, probe func(context.Context) error) *admission.Starts {
	t.Helper()
	starts, share := engage(t, g, l, probe)
	share.Release()
	return starts
}
