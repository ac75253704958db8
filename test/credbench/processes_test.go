// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package credbench

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// cpu returns what this process and its children that have ended have used.
func cpu(t testing.TB) time.Duration {
	t.Helper()
	var total time.Duration
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var usage syscall.Rusage
		check(t, syscall.Getrusage(who, &usage))
		total += time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
	}
	return total
}

// peakChildren counts how many processes are there at once, as far as looking
// every few milliseconds tells, until the function is called. It is 0 where
// there is no /proc.
func peakChildren() (stop func() int) {
	done := make(chan struct{})
	peak := 0
	var group sync.WaitGroup
	group.Go(func() {
		ticker := time.NewTicker(5 * time.Millisecond)
		defer ticker.Stop()
		for {
			select {
			case <-done:
				return
			case <-ticker.C:
			}
			lists, _ := filepath.Glob("/proc/self/task/*/children")
			n := 0
			for _, list := range lists {
				children, _ := os.ReadFile(list)
				n += len(strings.Fields(string(children)))
			}
			peak = max(peak, n)
		}
	})
	return func() int {
		close(done)
		group.Wait()
		return peak
	}
}
