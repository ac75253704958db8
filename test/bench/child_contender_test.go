// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"os"
	"runtime/metrics"
	"runtime/pprof"
	"sync"
	"testing"
	"time"
)

// remoteContender is a contender of a child.
type remoteContender struct {
	mu      sync.Mutex // guards what follows
	seen    int        // reconciles
	last    time.Time  // of them
	ages    []time.Duration
	awaited int
	enough  chan struct{} // closed when so many have been seen as are awaited

	cpu     time.Duration // before Begin
	profile *os.File
}

func newRemoteContender(tb testing.TB, start contestant, todo Task) *remoteContender {
	r := &remoteContender{}
	c := start(tb, todo.Home, observer{reconcile: r.reconcile})
	tb.Cleanup(c.stop)
	joinAll(c, todo.Members)
	return r
}

func (r *remoteContender) reconcile(o object) {
	age, ok := age(o.name)
	r.mu.Lock()
	defer r.mu.Unlock()
	if ok {
		r.ages = append(r.ages, age)
	}
	r.seen++
	if r.seen == r.awaited {
		r.last = time.Now()
		close(r.enough)
	}
}

// Await returns when there have been n reconciles, and when the last of them was.
func (r *remoteContender) Await(n int, at *time.Time) error {
	r.mu.Lock()
	if r.awaited = n; r.seen >= n {
		defer r.mu.Unlock()
		*at = time.Now()
		return nil
	}
	enough := make(chan struct{})
	r.enough = enough
	r.mu.Unlock()
	select {
	case <-enough:
	case <-time.After(waitLimit):
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.seen < n {
		return fmt.Errorf("%d of %d objects reconciled after %v", r.seen, n, waitLimit)
	}
	*at = r.last
	return nil
}

// Used is what a contender has used since Begin, and holds now.
type Used struct {
	CPU   time.Duration
	Stack int // bytes
	Ages  []time.Duration
}

// Begin forgets what was used so far. The profile is the path of a CPU profile to
// be written, or "".
func (r *remoteContender) Begin(profile string, _ *int) error {
	settled()
	if profile != "" {
		file, err := os.Create(profile)
		if err != nil {
			return err
		}
		if err := pprof.StartCPUProfile(file); err != nil {
			return err
		}
		r.profile = file
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ages = nil
	r.cpu = cpuTime()
	return nil
}

// End returns what was used since Begin.
func (r *remoteContender) End(_ int, used *Used) error {
	cpu := cpuTime()
	if r.profile != nil {
		pprof.StopCPUProfile()
		if err := r.profile.Close(); err != nil {
			return err
		}
		r.profile = nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	sample := []metrics.Sample{{Name: "/memory/classes/heap/stacks:bytes"}}
	metrics.Read(sample)
	*used = Used{CPU: cpu - r.cpu, Stack: int(sample[0].Value.Uint64()), Ages: r.ages}
	return nil
}
