// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"flag"
	"fmt"
	"math"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

var (
	apartRounds = flag.Int("apart-rounds", fullApart.rounds, "number of rounds of BenchmarkApart")
	apartEvery  = flag.Duration("apart-every", fullApart.every, "time between two events of BenchmarkApart")
	profiles    = flag.String("profiles", "", "folder that BenchmarkApart writes CPU profiles of the contenders to")
)

// apartSize is how much BenchmarkApart measures.
type apartSize struct {
	clusters int
	busy     int           // clusters that have events before the burst
	every    time.Duration // time between their events
	warmUp   time.Duration
	window   time.Duration // of the measurement
	burst    int           // events over all clusters
	rounds   int
}

var (
	// A window of 11 s is the mean time between two probes of a cluster.
	fullApart     = apartSize{clusters: 200, busy: 10, every: 10 * time.Millisecond, warmUp: 2 * time.Second, window: 11 * time.Second, burst: 20_000, rounds: 5}
	smallestApart = apartSize{clusters: 4, busy: 2, every: 2 * time.Millisecond, warmUp: 20 * time.Millisecond, window: 100 * time.Millisecond, burst: 40, rounds: 1}
)

// BenchmarkApart runs API servers and contenders in processes of their own, once
// whatever -benchtime is, and prints the table.
func BenchmarkApart(b *testing.B) {
	s := fullApart
	s.rounds, s.every = *apartRounds, *apartEvery
	began := time.Now()
	rows := apart(b, s)
	publish(b, fmt.Sprintf("API servers apart: %d clusters, %d of them with events, one each %v; %d rounds, %d cores, %s; %.0f s",
		s.clusters, s.busy, s.every, s.rounds, runtime.NumCPU(), runtime.Version(), time.Since(began).Seconds()), table("bare", "rollcall", rows))
}

func TestApart(t *testing.T) {
	g := NewWithT(t)
	for _, r := range apart(t, smallestApart) {
		for _, values := range [][]float64{r.other, r.rollcall} {
			g.Expect(values).To(HaveLen(1), r.name)
			g.Expect(math.IsNaN(values[0])).To(BeFalse(), r.name)
		}
	}
}

func apart(tb testing.TB, s apartSize) []row {
	e := experiment{
		rows: []row{
			{name: "CPU time per event", format: microseconds, goal: atMost(1.05)},
			{name: "event to reconcile, p50", format: milliseconds, goal: atMost(1.05)},
			{name: "event to reconcile, p99", format: milliseconds, goal: atMost(1.05)},
			{name: "stack per cluster", format: kilobytes, goal: atMost(1.05)},
			{name: "burst, events per second", format: integer, goal: atLeast(0.95)},
			{name: "burst, CPU time per event", format: microseconds, goal: atMost(1.05)},
		},
	}
	for round := range s.rounds {
		sides := measureApart(tb, s, round)
		e.add(sides["bare"], sides["rollcall"])
	}
	return e.rows
}

// measureApart measures both contenders at the same time, in new processes, and
// then the burst of one after the other. It returns values by role.
func measureApart(tb testing.TB, s apartSize, round int) map[string][]float64 {
	tb.Helper()
	servers, stop := startChild(tb, Task{Role: "servers", Clusters: s.clusters})
	defer stop()
	roles := []string{"bare", "rollcall"}
	if round%2 == 1 {
		slices.Reverse(roles)
	}
	contenders := map[string]*child{}
	for _, role := range roles {
		c, stop := startChild(tb, ask[Task](servers, "Task", role))
		defer stop()
		contenders[role] = c
		ask[time.Time](c, "Await", s.clusters)
	}
	profile := func(role, phase string) string {
		if *profiles == "" {
			return ""
		}
		return filepath.Join(*profiles, fmt.Sprintf("%s-%s-%d.pprof", role, phase, round))
	}

	trickle := Trickle{Clusters: s.busy, Every: s.every, For: s.warmUp}
	seen := s.clusters + ask[int](servers, "Trickle", trickle)
	for role, c := range contenders {
		ask[time.Time](c, "Await", seen)
		ask[int](c, "Begin", profile(role, "steady"))
	}
	trickle.For = s.window
	steady := ask[int](servers, "Trickle", trickle)
	seen += steady
	values := map[string][]float64{}
	for role, c := range contenders {
		ask[time.Time](c, "Await", seen)
		used := ask[Used](c, "End", 0)
		values[role] = []float64{
			used.CPU.Seconds() / float64(steady),
			percentile(used.Ages, 50).Seconds(), percentile(used.Ages, 99).Seconds(),
			float64(used.Stack) / float64(s.clusters),
		}
	}

	// Each goes first once, since the load of the machine changes.
	var took, cpu [2]time.Duration
	created := 0
	for turn, i := range []int{0, 1, 1, 0} {
		role, c := roles[i], contenders[roles[i]]
		created = ask[int](servers, "Burst", Burst{Role: role, Name: fmt.Sprintf("burst-%d", turn), Each: s.burst / s.clusters})
		ask[int](c, "Begin", profile(role, "burst"))
		began := ask[time.Time](servers, "Release", 0)
		took[i] += ask[time.Time](c, "Await", seen+created*(1+turn/2)).Sub(began)
		cpu[i] += ask[Used](c, "End", 0).CPU
	}
	for i, role := range roles {
		n := float64(2 * created)
		values[role] = append(values[role], n/took[i].Seconds(), cpu[i].Seconds()/n)
	}
	return values
}
