// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"testing"
	"time"

	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
	"github.com/rollcall-dev/rollcall/test/internal/measure"
)

// deadClusters measures how long nineteen of twenty clusters take from nothing
// to a reconcile in each, while the others are well and while they are dead.
func deadClusters(tb testing.TB, start contestant, s size) []float64 {
	tb.Helper()
	well := healthyUp(tb, start, s.clusters, false)
	dead := healthyUp(tb, start, s.clusters, true)
	return []float64{well.Seconds(), dead.Seconds(), dead.Seconds() / well.Seconds()}
}

// healthyUp lets every twentieth cluster hang or, in turns, refuse connections.
func healthyUp(tb testing.TB, start contestant, n int, dead bool) time.Duration {
	tb.Helper()
	home, fleet := mctest.New(tb), newFleet(tb, n)
	defer closeFleet(fleet)
	ill := map[string]bool{}
	for i := 0; i < n; i += 20 {
		cl := fleet.Cluster(i)
		ill[cl.Name()] = true
		switch {
		case !dead:
		case i%40 == 0:
			defer cl.Fault(mctest.Hang)()
		default:
			defer cl.Fault(mctest.Refuse)()
		}
	}
	r := newRecord()
	measure.Settled()
	began := time.Now()
	c := start(tb, home, observer{reconcile: func(o object) {
		if !ill[o.cluster] {
			r.reconcile(o)
		}
	}})
	joinAll(c, fleet.Clusters())
	r.await(tb, n-len(ill))
	took := time.Since(began)
	for _, cl := range fleet.Clusters() {
		cl.Clear() // a request that hangs would hold up the end
	}
	c.stop()
	return took
}
