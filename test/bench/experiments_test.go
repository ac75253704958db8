// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"testing"
)

// experiment measures a contestant, and has a row for each value.
type experiment struct {
	name string
	rows []row
	// run measures a contestant once, and returns a value for each row.
	run func(tb testing.TB, start contestant, s size) []float64
	// rounds is how many rounds there are at most; 0 does not limit them.
	rounds int
	// fresh is whether to wait until nothing is left of the warm-up.
	fresh bool
}

func experiments() []experiment {
	return []experiment{
		// The first, so that nothing is left of the other experiments.
		{name: "cycles", run: cycles, rounds: 1, fresh: true, rows: []row{
			{name: "time of a join and leave", format: milliseconds},
			{name: "goroutines left behind", format: integer, compare: alone, goal: atMost(0)},
			{name: "watches left behind", format: integer, compare: alone, goal: atMost(0)},
			{name: "heap left behind per cycle", format: plainBytes, compare: alone, goal: atMost(64)},
			{name: "  right after the last cycle", format: plainBytes, compare: alone},
		}},
		{name: "cold-start", run: coldStart, rows: []row{
			{name: "cold start, wall time", format: seconds},
			{name: "cold start, CPU time", format: seconds},
			{name: "heap per cluster", format: kilobytes, goal: atMost(1.1)},
			{name: "goroutines per cluster", format: decimal, compare: difference, goal: atMost(3)},
			{name: "requests per cluster", format: decimal, compare: difference},
		}},
		{name: "events", run: events, rows: []row{
			{name: "event to reconcile, p50", format: milliseconds, goal: atMost(1.1)},
			{name: "event to reconcile, p99", format: milliseconds, goal: atMost(1.1)},
			{name: "events per second", format: integer, goal: atLeast(0.9)},
			{name: "CPU time per event", format: microseconds, goal: atMost(1.1)},
		}},
		{name: "noisy-neighbour", run: noisyNeighbour, rows: []row{
			{name: "quiet cluster, p99 without noise", format: milliseconds},
			{name: "quiet cluster, p99 with noise", format: milliseconds},
			{name: "  with / without", format: decimal, compare: alone, goal: atMost(3)},
			{name: "  of that in the queue, p99", format: milliseconds},
		}},
		{name: "slow-neighbour", run: slowNeighbour, rounds: 1, rows: []row{
			{name: "others' reconciles per second", format: integer},
			{name: "  beside a slow cluster", format: integer},
			{name: "  with / without", format: decimal, compare: alone, goal: atLeast(0.9)},
			{name: "  that had all workers before", format: integer},
			{name: "  with / without", format: decimal, compare: alone},
		}},
		{name: "dead-clusters", run: deadClusters, rows: []row{
			{name: "healthy clusters up, none dead", format: seconds},
			{name: "healthy clusters up, 5 % dead", format: seconds},
			{name: "  with / without", format: decimal, compare: alone, goal: atMost(1.1)},
		}},
	}
}

// measure runs an experiment in rounds, and fills in its rows. The contestant
// that goes first alternates.
func (e *experiment) measure(tb testing.TB, s size) {
	tb.Helper()
	rounds := s.rounds
	if e.rounds > 0 {
		rounds = min(rounds, e.rounds)
	}
	for round := range rounds {
		if round%2 == 0 {
			bare := e.run(tb, startBare, s)
			e.add(bare, e.run(tb, startRollcall, s))
		} else {
			rollcall := e.run(tb, startRollcall, s)
			e.add(e.run(tb, startBare, s), rollcall)
		}
	}
}

func (e *experiment) add(bare, rollcall []float64) {
	for i := range e.rows {
		e.rows[i].other = append(e.rows[i].other, bare[i])
		e.rows[i].rollcall = append(e.rows[i].rollcall, rollcall[i])
	}
}
