// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"testing"
	"time"

	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
)

// BenchmarkAHundredOfTwoThousandHang compares the time until 1,900 clusters are
// listed, alone and beside 100 that accept requests and never answer. The side
// that goes first alternates. The ratio is the median over the rounds.
func BenchmarkAHundredOfTwoThousandHang(b *testing.B) {
	const all, every, rounds = 2000, 20, 5
	servers := mctest.NewFleet(b, all)
	var healthy []*mctest.Cluster
	for i, c := range servers.Clusters() {
		if i%every == every-1 {
			c.Fault(mctest.Hang)
			continue
		}
		healthy = append(healthy, c)
	}
	for b.Loop() {
		var ratios []float64
		for round := range rounds {
			sides := [][]*mctest.Cluster{healthy, servers.Clusters()}
			var took [2]time.Duration
			for i := range sides {
				side := (i + round) % len(sides)
				began := time.Now()
				f := startFleet(b, sides[side], len(healthy), 0)
				took[side] = time.Since(began)
				f.stop()
			}
			ratios = append(ratios, float64(took[1])/float64(took[0]))
			b.Logf("alone %v, beside those that hang %v: %.2f", took[0].Round(time.Millisecond), took[1].Round(time.Millisecond), ratios[round])
		}
		b.ReportMetric(median(ratios), "ratio")
	}
}
