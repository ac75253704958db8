// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"fmt"
	"time"

	"k8s.io/utils/clock"
)

// timeoutError is what ends something that takes too long. It is
// context.DeadlineExceeded.
type timeoutError struct {
	missing string // what has not come
	limit   time.Duration
}

func (e *timeoutError) Error() string { return fmt.Sprintf("no %s within %v", e.missing, e.limit) }

func (e *timeoutError) Is(target error) bool { return target == context.DeadlineExceeded }

// within returns a context that ends after the limit, by the clock. The cause
// says what has not come.
func within(ctx context.Context, c clock.WithDelayedExecution, limit time.Duration, missing string) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	timer := afterFunc(c, limit, func() { cancel(&timeoutError{missing, limit}) })
	return ctx, func() {
		timer.Stop()
		cancel(nil)
	}
}

// afterFunc calls the function in a goroutine of its own, which not every clock
// does: some have a lock meanwhile.
func afterFunc(c clock.WithDelayedExecution, d time.Duration, f func()) clock.Timer {
	return c.AfterFunc(d, func() { go f() })
}
