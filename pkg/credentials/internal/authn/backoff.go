// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package authn

import (
	"math"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// initialBackoff gives delays of 1 s, 2 s, 4 s and so on up to 1 min, each with up
// to a fifth added at random.
var initialBackoff = wait.Backoff{Duration: time.Second, Factor: 2, Jitter: 0.2, Steps: math.MaxInt32, Cap: time.Minute}

// backoff is the delay between attempts. It starts over after two minutes
// without any. The zero value is over.
type backoff struct {
	delays wait.Backoff
	until  time.Time
}

// isOver reports whether the next attempt may be made.
func (b *backoff) isOver(now time.Time) bool { return !now.Before(b.until) }

// next notes an attempt.
func (b *backoff) next(now time.Time) {
	if b.delays.Duration == 0 || now.Sub(b.until) > 2*initialBackoff.Cap {
		b.delays = initialBackoff
	}
	b.until = now.Add(b.delays.Step())
}
