// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package measure

import "fmt"

// How values are written. Times are given in seconds, shares as parts of one.

func Seconds(v float64) string      { return fmt.Sprintf("%.2f s", v) }
func Milliseconds(v float64) string { return fmt.Sprintf("%.2f ms", v*1e3) }
func Microseconds(v float64) string { return fmt.Sprintf("%.0f µs", v*1e6) }
func Nanoseconds(v float64) string  { return fmt.Sprintf("%.1f ns", v*1e9) }
func Bytes(v float64) string        { return fmt.Sprintf("%.0f B", v) }
func Kilobytes(v float64) string    { return fmt.Sprintf("%.1f kB", v/1e3) }
func Megabytes(v float64) string    { return fmt.Sprintf("%.1f MB", v/1e6) }
func Decimal(v float64) string      { return fmt.Sprintf("%.2f", v) }
func Integer(v float64) string      { return fmt.Sprintf("%.0f", v) }
func Percent(v float64) string      { return fmt.Sprintf("%.1f %%", v*100) }

// Signed writes a difference: with its sign, also if that is a plus.
func Signed(format func(float64) string, v float64) string {
	if v < 0 {
		return "−" + format(-v)
	}
	return "+" + format(v)
}
