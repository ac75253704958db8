// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package fleetbench

import (
	"runtime"
	"runtime/metrics"
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
	return resources{heap: heap(), goroutines: runtime.NumGoroutine()}
}

// heap is what objects take, those included that nobody has collected yet.
func heap() int {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return int(sample[0].Value.Uint64())
}

// peak returns the most that the heap comes to until the function is called.
func peak() (end func() int) {
	stop, most := make(chan struct{}), make(chan int)
	go func() {
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		highest := heap()
		for {
			select {
			case <-stop:
				most <- highest
				return
			case <-tick.C:
				highest = max(highest, heap())
			}
		}
	}()
	return func() int {
		close(stop)
		return <-most
	}
}

// median of the values, which it sorts.
func median(values []float64) float64 {
	slices.Sort(values)
	n := len(values)
	return (values[(n-1)/2] + values[n/2]) / 2
}
