// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package fleetbench

import (
	"flag"
	"fmt"
	"runtime"
	"testing"
	"time"
)

var clusters = flag.Int("fleet-clusters", full.clusters, "how many clusters there are")

// size is how much is measured.
type size struct {
	clusters int
	rounds   int           // of the start, of which the median counts
	beats    time.Duration // for which heartbeats come
	gets     int           // by each of the goroutines
	heavy    int           // clusters that are listed for the peak of the heap
	objects  int           // in each of them
	pods     int           // in a cache
}

var (
	full     = size{clusters: 500, rounds: 3, beats: 10 * time.Second, gets: 2_000_000, heavy: 100, objects: 200, pods: 5000}
	smallest = size{clusters: 10, rounds: 1, beats: 100 * time.Millisecond, gets: 1000, heavy: 5, objects: 5, pods: 200}
)

// BenchmarkFleet runs all experiments once, whatever the time given, and prints
// the table.
func BenchmarkFleet(b *testing.B) {
	s := full
	s.clusters = *clusters
	if s.clusters < 10 {
		b.Fatal("it takes 10 clusters at least")
	}
	run(b, smallest) // to warm up
	began := time.Now()
	rows := run(b, s)
	fmt.Printf("\n%d clusters, %d cores, %s; %.0f s\n\n%s\n", s.clusters, runtime.NumCPU(), runtime.Version(), time.Since(began).Seconds(), table(rows))
}

func TestAllExperimentsRun(t *testing.T) {
	rows := run(t, smallest)
	t.Logf("\n%s", table(rows))
	for _, r := range rows {
		if r.exact && !r.met() {
			t.Errorf("%s: %s, must be %s", r.name, r.format(r.fleet), r.format(r.limit))
		}
	}
}

func run(tb testing.TB, s size) []row {
	tb.Helper()
	var rows []row
	for _, experiment := range []func(testing.TB, size) []row{starts, peaks, running} {
		rows = append(rows, experiment(tb, s)...)
	}
	return rows
}
