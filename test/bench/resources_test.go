// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"runtime"
	"runtime/metrics"
	"time"
)

// resources are what the process holds.
type resources struct {
	heap       int // bytes
	goroutines int
}

// settled waits until no goroutine starts or ends, collects garbage, and returns
// what the process holds.
func settled() resources {
	const still = 20 // samples in a row with the same number
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
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
		<-tick.C
	}
	// What finalizers and pools still hold goes with the second and third.
	for range 3 {
		runtime.GC()
	}
	return resources{heap: heap(), goroutines: runtime.NumGoroutine()}
}

// heap returns the bytes of all objects, garbage included. It is cheap enough to
// be called every millisecond.
func heap() int {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return int(sample[0].Value.Uint64())
}
