// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import "time"

// size is how much BenchmarkAgainstBare measures.
type size struct {
	// clusters is the number of clusters. One of twenty is dead in the
	// experiment with dead ones.
	clusters int
	// rounds is the number of rounds of each experiment, with both contenders.
	rounds int
	// samples is the number of latencies in a round.
	samples int
	// events is the number of events in one burst over all clusters.
	events int
	// noise is the number of events that the noisy cluster gets at once.
	noise int
	// quiet is how long the quiet cluster is measured without noise.
	quiet time.Duration
	// slow is how long the reconciles of the slow cluster take.
	slow time.Duration
	// cycles is the number of times that clusters join and leave.
	cycles int
}

// full is the size of make bench.
var full = size{
	clusters: 100,
	rounds:   5,
	samples:  1000,
	events:   10_000,
	noise:    20_000,
	quiet:    3 * time.Second,
	slow:     10 * time.Second,
	cycles:   1000,
}

// smallest runs all the code once.
var smallest = size{
	clusters: 20,
	rounds:   1,
	samples:  10,
	events:   100,
	noise:    100,
	quiet:    100 * time.Millisecond,
	slow:     10 * time.Millisecond,
	cycles:   10,
}
