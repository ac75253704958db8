// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"testing"
	"time"

	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
)

// deadClusters measures the time from nothing to a reconcile in each of nineteen
// of twenty clusters, while the others are healthy and while they are dead.
func deadClusters(tb testing.TB, start contestant, s size) []float64 {
	tb.Helper()
	healthy := healthyUp(tb, start, s.clusters, false)
	dead := healthyUp(tb, start, s.clusters, true)
	return []float64{healthy.Seconds(), dead.Seconds(), dead.Seconds() / healthy.Seconds()}
}

// healthyUp measures that time. If dead is set, every twentieth cluster hangs or
// refuses connections, alternately.
func healthyUp(tb testing.TB, start contestant, n int, dead bool) time.Duration {
	tb.Helper()
	home, fleet := mctest.New(tb), newFleet(tb, n)
	defer closeFleet(fleet)
	sick := map[string]bool{}
	for i := 0; i < n; i += 20 {
		cl := fleet.Cluster(i)
		sick[cl.Name()] = true
		switch {
		case !dead:
		case i%40 == 0:
			defer cl.Fault(mctest.Hang)()
		default:
			defer cl.Fault(mctest.Refuse)()
		}
	}
	r := newRecord()
	settled()
	began := time.Now()
	c := start(tb, home, observer{reconcile: func(o object) {
		if !sick[o.cluster] {
			r.reconcile(o)
		}
	}})
	joinAll(c, fleet.Clusters())
	r.await(tb, n-len(sick))
	took := time.Since(began)
	for _, cl := range fleet.Clusters() {
		cl.Clear() // a request that hangs would delay the stop
	}
	c.stop()
	return took
}
