// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"testing"

	"github.com/rollcall-dev/rollcall/test/internal/measure"
)

// experiment measures one thing after the other.
type experiment struct {
	name string
	rows []row
	// run measures a contestant once and returns a value for each row.
	run func(tb testing.TB, start contestant, s size) []float64
	// rounds at most; as many as there are, if 0.
	rounds int
	// afresh is for experiments that begin when nothing is left of the warm-up.
	afresh bool
}

func experiments() []experiment {
	return []experiment{
		// The first, so that what others leave behind for a while is not there.
		{name: "cycles", run: cycles, rounds: 1, afresh: true, rows: []row{
			{name: "time of a join and leave", format: measure.Milliseconds},
			{name: "goroutines left behind", format: measure.Integer, compare: alone, goal: atMost(0)},
			{name: "watches left behind", format: measure.Integer, compare: alone, goal: atMost(0)},
			{name: "heap left behind per cycle", format: measure.Bytes, compare: alone, goal: atMost(64)},
			{name: "  right after the last cycle", format: measure.Bytes, compare: alone},
		}},
		{name: "cold-start", run: coldStart, rows: []row{
			{name: "cold start, wall time", format: measure.Seconds},
			{name: "cold start, CPU time", format: measure.Seconds},
			{name: "heap per cluster", format: measure.Kilobytes, goal: atMost(1.1)},
			{name: "goroutines per cluster", format: measure.Decimal, compare: difference, goal: atMost(3)},
			{name: "requests per cluster", format: measure.Decimal, compare: difference},
		}},
		{name: "events", run: events, rows: []row{
			{name: "event to reconcile, p50", format: measure.Milliseconds, goal: atMost(1.1)},
			{name: "event to reconcile, p99", format: measure.Milliseconds, goal: atMost(1.1)},
			{name: "events per second", format: measure.Integer, goal: atLeast(0.9)},
			{name: "CPU time per event", format: measure.Microseconds, goal: atMost(1.1)},
		}},
		{name: "noisy-neighbour", run: noisyNeighbour, rows: []row{
			{name: "quiet cluster, p99 without noise", format: measure.Milliseconds},
			{name: "quiet cluster, p99 with noise", format: measure.Milliseconds},
			{name: "  with / without", format: measure.Decimal, compare: alone, goal: atMost(3)},
			{name: "  of that in the queue, p99", format: measure.Milliseconds},
		}},
		{name: "slow-neighbour", run: slowNeighbour, rounds: 1, rows: []row{
			{name: "others' reconciles per second", format: measure.Integer},
			{name: "  beside a slow cluster", format: measure.Integer},
			{name: "  with / without", format: measure.Decimal, compare: alone, goal: atLeast(0.9)},
			{name: "  that had all workers before", format: measure.Integer},
			{name: "  with / without", format: measure.Decimal, compare: alone},
		}},
		{name: "dead-clusters", run: deadClusters, rows: []row{
			{name: "healthy clusters up, none dead", format: measure.Seconds},
			{name: "healthy clusters up, 5 % dead", format: measure.Seconds},
			{name: "  with / without", format: measure.Decimal, compare: alone, goal: atMost(1.1)},
		}},
	}
}

// measure runs an experiment in rounds, in which the contestants take turns at
// going first, and fills in its rows.
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
		e.rows[i].bare = append(e.rows[i].bare, bare[i])
		e.rows[i].rollcall = append(e.rows[i].rollcall, rollcall[i])
	}
}
