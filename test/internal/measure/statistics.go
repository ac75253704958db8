// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"slices"
	"time"
)

// Percentile returns the value that p of a hundred do not exceed. It sorts the
// values.
func Percentile(values []time.Duration, p int) time.Duration {
	slices.Sort(values)
	return values[max((len(values)*p+99)/100-1, 0)]
}

// Median returns the middle of the values, which it sorts.
func Median(values []float64) float64 {
	slices.Sort(values)
	n := len(values)
	return (values[(n-1)/2] + values[n/2]) / 2
}
