// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"testing"
	"time"

	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
)

// coldStart measures the time from nothing to a reconcile in every cluster, and
// what the process holds then.
func coldStart(tb testing.TB, start contestant, s size) []float64 {
	tb.Helper()
	home, fleet := mctest.New(tb), newFleet(tb, s.clusters)
	defer closeFleet(fleet)
	r := newRecord()

	before := settled()
	cpu, began := cpuTime(), time.Now()
	c := start(tb, home, observer{reconcile: r.reconcile})
	joinAll(c, fleet.Clusters())
	r.await(tb, s.clusters)
	took, cpu := time.Since(began), cpuTime()-cpu
	after := settled()
	requests := 0
	for _, cl := range fleet.Clusters() {
		requests += cl.Requests("", "")
	}
	c.stop()

	n := float64(s.clusters)
	return []float64{
		took.Seconds(), cpu.Seconds(),
		float64(after.heap-before.heap) / n,
		float64(after.goroutines-before.goroutines) / n,
		float64(requests) / n,
	}
}
