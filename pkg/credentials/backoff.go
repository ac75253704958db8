// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"math/rand/v2"
	"time"
)

const (
	minBackoff = time.Second
	maxBackoff = time.Minute
)

// backoff is the time to wait between attempts: 1 s, then twice as long each
// time, up to 1 min, with up to a fifth more by chance. It starts anew when
// nothing was attempted for two minutes. The zero value is over.
type backoff struct {
	delay time.Duration
	until time.Time
}

// isOver tells whether the next attempt may be made.
func (b *backoff) isOver(now time.Time) bool { return !now.Before(b.until) }

// next notes an attempt.
func (b *backoff) next(now time.Time) {
	if b.delay == 0 || now.Sub(b.until) > 2*maxBackoff {
		b.delay = minBackoff
	} else {
		b.delay = min(2*b.delay, maxBackoff)
	}
	b.until = now.Add(b.delay + rand.N(b.delay/5))
}
