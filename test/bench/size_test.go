// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import "time"

// size is how much is measured.
type size struct {
	// clusters there are, one of twenty of which is dead in the experiment
	// with dead ones.
	clusters int
	// rounds of each experiment, each with both contenders.
	rounds int
	// samples of the latency in a round.
	samples int
	// events in one burst over all clusters.
	events int
	// noise is how many events the noisy cluster has at once.
	noise int
	// quiet is how long the quiet cluster is looked at without noise.
	quiet time.Duration
	// slow is how long the reconciles of the slow cluster take.
	slow time.Duration
	// cycles of joining and leaving.
	cycles int
}

// full is the size of make bench, but for the number of clusters.
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

// smallest is enough to run all the code once.
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
