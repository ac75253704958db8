// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"cmp"
	"slices"
	"time"
)

// percentile returns the value that p of a hundred values do not exceed.
func percentile(values []time.Duration, p int) time.Duration {
	return sorted(values)[max((len(values)*p+99)/100-1, 0)]
}

// median returns the middle value, or the mean of the two in the middle.
func median(values []float64) float64 {
	values = sorted(values)
	n := len(values)
	return (values[(n-1)/2] + values[n/2]) / 2
}

func sorted[T cmp.Ordered](values []T) []T {
	values = slices.Clone(values)
	slices.Sort(values)
	return values
}
