// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"flag"
	"fmt"
	"math"
	"runtime"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

var (
	clusters = flag.Int("clusters", full.clusters, "number of clusters of BenchmarkAgainstBare")
	rounds   = flag.Int("rounds", full.rounds, "number of rounds of each experiment of BenchmarkAgainstBare")
)

// BenchmarkAgainstBare runs all experiments once, whatever -benchtime is, and
// prints the table.
func BenchmarkAgainstBare(b *testing.B) {
	s := full
	s.clusters, s.rounds = *clusters, *rounds
	if s.clusters < 20 || s.rounds < 1 {
		b.Fatal("at least 20 clusters and 1 round are needed")
	}
	began, cpu := time.Now(), cpuTime()
	var rows []row
	for _, e := range experiments() {
		b.Run(e.name, func(b *testing.B) {
			for _, start := range []contestant{startBare, startRollcall} {
				e.run(b, start, smallest) // to warm up
			}
			if e.fresh {
				<-time.After(idle + 5*time.Second)
			}
			e.measure(b, s)
		})
		for _, r := range e.rows {
			if len(r.rollcall) > 0 {
				rows = append(rows, r)
			}
		}
	}
	took := time.Since(began)
	publish(b, fmt.Sprintf("%d clusters, %d rounds, %d cores, %s; %.0f s, of which %.0f %% of the cores were ours",
		s.clusters, s.rounds, runtime.NumCPU(), runtime.Version(), took.Seconds(),
		100*(cpuTime()-cpu).Seconds()/took.Seconds()/float64(runtime.NumCPU())), table("bare", "rollcall", rows))
}

func TestExperiments(t *testing.T) {
	for _, e := range experiments() {
		t.Run(e.name, func(t *testing.T) {
			g := NewWithT(t)
			e.measure(t, smallest)
			for _, r := range e.rows {
				for _, values := range [][]float64{r.other, r.rollcall} {
					g.Expect(values).To(HaveLen(1), r.name)
					g.Expect(math.IsNaN(values[0])).To(BeFalse(), r.name)
				}
			}
		})
	}
}
