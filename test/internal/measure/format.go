// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package measure

import "fmt"

// Format writes a value. Times are in seconds, shares are parts of one.
type Format = func(float64) string

// The ways in which values are written.
var (
	Seconds      = in("%.2f s", 1)
	Milliseconds = in("%.2f ms", 1e3)
	Microseconds = in("%.0f µs", 1e6)
	Nanoseconds  = in("%.1f ns", 1e9)
	Bytes        = in("%.0f B", 1)
	Kilobytes    = in("%.1f kB", 1e-3)
	Megabytes    = in("%.1f MB", 1e-6)
	Decimal      = in("%.2f", 1)
	Integer      = in("%.0f", 1)
	Percent      = in("%.1f %%", 100)
)

func in(unit string, factor float64) Format {
	return func(v float64) string { return fmt.Sprintf(unit, v*factor) }
}

// Signed writes a difference: with its sign, also if that is a plus.
func Signed(format Format, v float64) string {
	if v < 0 {
		return "−" + format(-v)
	}
	return "+" + format(v)
}
