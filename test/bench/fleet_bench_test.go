// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"flag"
	"fmt"
	"runtime"
	"testing"
	"time"
)

var fleetClusters = flag.Int("fleet-clusters", fullFleet.clusters, "number of clusters of BenchmarkFleet")

// fleetSize is how much BenchmarkFleet measures.
type fleetSize struct {
	clusters int
	rounds   int           // of the start
	beats    time.Duration // for which heartbeats arrive
	gets     int           // by each of the goroutines
	heavy    int           // clusters that are listed for the peak of the heap
	objects  int           // in each of these
	failover int           // clusters with two profiles
}

var (
	fullFleet     = fleetSize{clusters: 500, rounds: 3, beats: 10 * time.Second, gets: 2_000_000, heavy: 100, objects: 200, failover: 50}
	smallestFleet = fleetSize{clusters: 10, rounds: 1, beats: 100 * time.Millisecond, gets: 1000, heavy: 5, objects: 5, failover: 5}
)

// BenchmarkFleet runs all experiments once, whatever the time given, and prints
// the table.
func BenchmarkFleet(b *testing.B) {
	s := fullFleet
	s.clusters = *fleetClusters
	if s.clusters < 10 {
		b.Fatal("at least 10 clusters are needed")
	}
	measureFleet(b, smallestFleet) // to warm up
	began := time.Now()
	rows := measureFleet(b, s)
	publish(b, fmt.Sprintf("%d clusters, %d cores, %s; %.0f s", s.clusters, runtime.NumCPU(), runtime.Version(), time.Since(began).Seconds()),
		table("other", "fleet", rows))
}

func TestFleetExperiments(t *testing.T) {
	rows := measureFleet(t, smallestFleet)
	t.Logf("\n%s", table("other", "fleet", rows))
	for _, r := range rows {
		if r.goal != nil && r.goal.always && !r.met() {
			t.Errorf("%s: %v, must be %s %v", r.name, r.rollcall, r.goal.sign, r.goal.limit)
		}
	}
}

func measureFleet(tb testing.TB, s fleetSize) []row {
	tb.Helper()
	rows := starts(tb, s)
	rows = append(rows, peaks(tb, s)...)
	rows = append(rows, running(tb, s)...)
	return append(rows, failovers(tb, s)...)
}
