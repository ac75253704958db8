// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"time"
)

// format writes a value. Times are in seconds, percentages are parts of one.
type format = func(float64) string

var (
	seconds      = unit("%.2f s", 1)
	milliseconds = unit("%.2f ms", 1e3)
	microseconds = unit("%.0f µs", 1e6)
	nanoseconds  = unit("%.1f ns", 1e9)
	plainBytes   = unit("%.0f B", 1)
	kilobytes    = unit("%.1f kB", 1e-3)
	megabytes    = unit("%.1f MB", 1e-6)
	mebibytes    = unit("%.1f MiB", 1./(1<<20))
	decimal      = unit("%.2f", 1)
	integer      = unit("%.0f", 1)
	percent      = unit("%.1f %%", 100)
)

func unit(text string, factor float64) format {
	return func(v float64) string { return fmt.Sprintf(text, v*factor) }
}

// shortTime writes milliseconds, with decimals for few of them.
func shortTime(v float64) string {
	if v < (10 * time.Millisecond).Seconds() {
		return fmt.Sprintf("%.2f ms", v*1e3)
	}
	return fmt.Sprintf("%.0f ms", v*1e3)
}

// signed writes a difference, with a plus sign if it is not negative.
func signed(f format, v float64) string {
	if v < 0 {
		return "−" + f(-v)
	}
	return "+" + f(v)
}
