// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"runtime"
	"runtime/metrics"
	"time"
)

// Resources are what the process holds.
type Resources struct {
	Heap       int // bytes, garbage that has been collected not included
	Goroutines int
}

// Settled returns what the process holds once nothing is starting or ending any
// more, and without garbage.
func Settled() Resources {
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
	return Resources{Heap: Heap(), Goroutines: runtime.NumGoroutine()}
}

// Heap is what objects take, in bytes, those included that nobody has
// collected yet. It is cheap enough to be looked at every millisecond.
func Heap() int {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return int(sample[0].Value.Uint64())
}
