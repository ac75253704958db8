// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	clocktesting "k8s.io/utils/clock/testing"
)

func TestATimeLimitIsADeadlineByTheClock(t *testing.T) {
	g := NewWithT(t)
	clock := clocktesting.NewFakeClock(time.Now())
	ctx, cancel := within(t.Context(), clock, time.Hour, "answer")
	defer cancel()
	inTime, stop := within(t.Context(), clock, time.Hour, "answer")
	stop()
	g.Expect(clock.Waiters()).To(Equal(1))
	clock.Step(time.Hour - 1)
	g.Expect(ctx.Err()).NotTo(HaveOccurred())
	clock.Step(1)
	g.Eventually(ctx.Done()).Should(BeClosed())
	g.Expect(context.Cause(ctx)).To(And(MatchError(context.DeadlineExceeded), MatchError("no answer within 1h0m0s")))
	g.Expect(context.Cause(inTime)).To(MatchError(context.Canceled))
}
