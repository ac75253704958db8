// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"testing"
	"time"

	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
)

// events measures the time from single events to their reconciles, one after the
// other in all clusters, and then the rate of a burst in all clusters.
func events(tb testing.TB, start contestant, s size) []float64 {
	tb.Helper()
	home, fleet := mctest.New(tb), newFleet(tb, s.clusters)
	defer closeFleet(fleet)
	r := newRecord()
	c := start(tb, home, observer{reconcile: r.reconcile})
	defer c.stop()
	joinAll(c, fleet.Clusters())
	r.await(tb, s.clusters)

	warmUp := s.clusters
	latencies := make([]time.Duration, 0, s.samples)
	for i := range warmUp + s.samples {
		cl := fleet.Cluster(i % s.clusters)
		o := object{cl.Name(), fmt.Sprintf("single-%d", i)}
		began := time.Now()
		create(tb, cl, o.name)
		r.await(tb, s.clusters+i+1)
		if i >= warmUp {
			latencies = append(latencies, r.at(o).Sub(began))
		}
	}

	seen, each := r.count(), s.events/s.clusters
	release := burst(tb, "burst", each, fleet.Clusters()...)
	settled()
	cpu, began := cpuTime(), time.Now()
	release()
	r.await(tb, seen+each*s.clusters)
	took, cpu := time.Since(began), cpuTime()-cpu
	n := float64(each * s.clusters)
	return []float64{
		percentile(latencies, 50).Seconds(), percentile(latencies, 99).Seconds(),
		n / took.Seconds(), cpu.Seconds() / n,
	}
}
