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

// isNew reports whether there has been no attempt lately.
func (b *backoff) isNew(now time.Time) bool {
	return b.delays.Duration == 0 || now.Sub(b.until) > 2*initialBackoff.Cap
}

// next notes an attempt.
func (b *backoff) next(now time.Time) {
	if b.isNew(now) {
		b.delays = initialBackoff
	}
	b.until = now.Add(b.delays.Step())
}

// forcedInterval is the interval of runs because of 401s in the long run, whichever
// clusters answer them. A few may follow each other at once, and more of them for
// clusters that have not answered a 401 lately: their credentials may really have
// been revoked.
const (
	forcedInterval  = 10 * time.Second
	repeatedAtOnce  = 4
	firstOnesAtOnce = 16
)

// allowance limits the runs of a plugin because of 401s.
type allowance struct {
	used time.Time // when it is complete again
}

// take reports whether the plugin may run now. First means that the cluster has not
// answered a 401 lately.
func (a *allowance) take(now time.Time, first bool) bool {
	atOnce := repeatedAtOnce
	if first {
		atOnce = firstOnesAtOnce
	}
	if a.used.Sub(now) > time.Duration(atOnce-1)*forcedInterval {
		return false
	}
	if a.used.Before(now) {
		a.used = now
	}
	a.used = a.used.Add(forcedInterval)
	return true
}
