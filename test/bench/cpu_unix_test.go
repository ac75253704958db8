// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package bench

import (
	"syscall"
	"time"
)

// cpuTime returns the processor time that the process has used.
func cpuTime() time.Duration { return usage(syscall.RUSAGE_SELF) }

// cpuTimeOfAll adds that of its children that have ended.
func cpuTimeOfAll() time.Duration { return cpuTime() + usage(syscall.RUSAGE_CHILDREN) }

func usage(who int) time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(who, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
