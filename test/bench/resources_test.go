// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"runtime"
	"slices"
	"time"
)

// resources are what the process holds.
type resources struct {
	heap       int // live bytes
	goroutines int
}

// settled returns what the process holds once nothing is starting or ending any
// more, and without garbage.
func settled() resources {
	const still = 20 // looks in a row at the same number
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	last, same := -1, 0
	for range 500 {
		n := runtime.NumGoroutine()
		if n == last {
			same++
		} else {
			last, same = n, 0
		}
		if same == still {
			break
		}
		<-look.C
	}
	// What finalizers and pools still hold goes with the second and third.
	for range 3 {
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return resources{heap: int(m.HeapAlloc), goroutines: runtime.NumGoroutine()}
}

// percentile returns the value that p of a hundred do not exceed.
func percentile(values []time.Duration, p int) time.Duration {
	slices.Sort(values)
	return values[max((len(values)*p+99)/100-1, 0)]
}

// median of the values, which it sorts.
func median(values []float64) float64 {
	slices.Sort(values)
	n := len(values)
	return (values[(n-1)/2] + values[n/2]) / 2
}
