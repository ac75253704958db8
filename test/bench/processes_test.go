// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package bench

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// peakChildren counts the child processes every few milliseconds, until the
// function returned is called, which returns the highest count. It is 0 where
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
