// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/rollcall-dev/rollcall/test/internal/measure"
)

var (
	clusters = flag.Int("clusters", full.clusters, "how many clusters there are")
	rounds   = flag.Int("rounds", full.rounds, "how often each experiment is run")
	out      = flag.String("out", "", "file that the table is written to, too")
)

// BenchmarkAgainstBare runs all experiments once, whatever the time given, and
// prints the table.
func BenchmarkAgainstBare(b *testing.B) {
	s := full
	s.clusters, s.rounds = *clusters, *rounds
	if s.clusters < 20 || s.rounds < 1 {
		b.Fatal("it takes 20 clusters and 1 round at least")
	}
	began, cpu := time.Now(), measure.CPUTime()
	var rows []row
	for _, e := range experiments() {
		b.Run(e.name, func(b *testing.B) {
			for _, start := range []contestant{startBare, startRollcall} {
				e.run(b, start, smallest) // to warm up
			}
			if e.afresh {
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
	text := fmt.Sprintf("%d clusters, %d rounds, %d cores, %s; %.0f s, of which %.0f %% of the cores were ours\n\n%s",
		s.clusters, s.rounds, runtime.NumCPU(), runtime.Version(), time.Since(began).Seconds(),
		100*(measure.CPUTime()-cpu).Seconds()/time.Since(began).Seconds()/float64(runtime.NumCPU()), table(rows))
	fmt.Print("\n", text, "\n")
	if *out == "" {
		return
	}
	if err := os.MkdirAll(filepath.Dir(*out), 0o755); err != nil {
		b.Fatal(err)
	}
	if err := os.WriteFile(*out, []byte(text), 0o644); err != nil {
		b.Fatal(err)
	}
}
