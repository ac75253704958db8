// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package timing_test

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/rollcall-dev/rollcall/pkg/mc/fleet/internal/timing"
)

func TestWithin(t *testing.T) {
	g := NewWithT(t)
	clock := clocktesting.NewFakeClock(time.Now())
	ctx, cancel := timing.Within(t.Context(), clock, time.Hour, "response")
	defer cancel()
	inTime, stop := timing.Within(t.Context(), clock, time.Hour, "response")
	stop()
	g.Expect(clock.Waiters()).To(Equal(1), "the timer of the other context is stopped")
	clock.Step(time.Hour - 1)
	g.Expect(ctx.Err()).NotTo(HaveOccurred())
	clock.Step(1)
	g.Eventually(ctx.Done()).Should(BeClosed())
	g.Expect(context.Cause(ctx)).To(And(MatchError(context.DeadlineExceeded), MatchError("no response within 1h0m0s")))
	g.Expect(context.Cause(inTime)).To(MatchError(context.Canceled))
}

func TestAfterFunc(t *testing.T) {
	g := NewWithT(t)
	clock := clocktesting.NewFakeClock(time.Now())
	called := make(chan struct{})
	timing.AfterFunc(clock, time.Second, func() {
		clock.Waiters() // needs the lock that Step holds
		close(called)
	})
	clock.Step(time.Second)
	g.Eventually(called).Should(BeClosed())
}
