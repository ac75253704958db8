// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Package timing has time limits that are measured by a clock which tests can
// set.
package timing

import (
	"context"
	"fmt"
	"time"

	"k8s.io/utils/clock"
)

// TimeoutError reports that something took too long. It is a
// context.DeadlineExceeded.
type TimeoutError struct {
	// Missing is what did not come in time, such as "response".
	Missing string
	// Limit is the time that it had.
	Limit time.Duration
}

func (e *TimeoutError) Error() string { return fmt.Sprintf("no %s within %v", e.Missing, e.Limit) }

// Is reports whether the target is context.DeadlineExceeded.
func (e *TimeoutError) Is(target error) bool { return target == context.DeadlineExceeded }

// Within returns a context that ends after the limit, measured by the clock.
// Its cause is then a [TimeoutError] with what is missing. The returned function
// must be called to stop the timer.
func Within(ctx context.Context, c clock.WithDelayedExecution, limit time.Duration, missing string) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	timer := AfterFunc(c, limit, func() { cancel(&TimeoutError{Missing: missing, Limit: limit}) })
	return ctx, func() {
		timer.Stop()
		cancel(nil)
	}
}

// AfterFunc calls the function after the duration in a goroutine of its own.
// Clocks of tests call it in the goroutine that sets the time, some of them with
// a lock held.
func AfterFunc(c clock.WithDelayedExecution, d time.Duration, f func()) clock.Timer {
	return c.AfterFunc(d, func() { go f() })
}
