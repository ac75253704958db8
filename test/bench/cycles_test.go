// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"sync"
	"testing"
	"time"

	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
)

// together is the number of clusters that join and leave at the same time.
const together = 10

// cycles lets clusters join, be reconciled and leave many times, and measures
// what remains.
func cycles(tb testing.TB, start contestant, s size) []float64 {
	tb.Helper()
	home, fleet := mctest.New(tb), newFleet(tb, together)
	defer closeFleet(fleet)
	reconciled := map[string]chan struct{}{}
	for _, cl := range fleet.Clusters() {
		reconciled[cl.Name()] = make(chan struct{}, 1)
	}
	c := start(tb, home, observer{reconcile: func(o object) {
		select {
		case reconciled[o.cluster] <- struct{}{}:
		default:
		}
	}})
	defer c.stop()
	run := func(n int) {
		var all sync.WaitGroup
		for _, cl := range fleet.Clusters() {
			all.Go(func() {
				for range n {
					cycle(tb, c, cl, reconciled[cl.Name()])
				}
			})
		}
		all.Wait()
	}

	each := max(s.cycles/together, 1)
	before, began := settled(), time.Now()
	run(each)
	took, first := time.Since(began), settled()
	watches := 0
	for _, cl := range fleet.Clusters() {
		watches += cl.OpenWatches("")
	}
	last := first
	if each*together >= full.cycles {
		last = subsided(before)
	}
	perCycle := func(r resources) float64 { return float64(r.heap-before.heap) / float64(each*together) }
	return []float64{
		took.Seconds() / float64(each),
		float64(last.goroutines - before.goroutines),
		float64(watches),
		perCycle(last), perCycle(first),
	}
}

// idle is the time for which net/http keeps an unused connection.
const idle = 90 * time.Second

// subsided waits until the process holds no more than before, or until all
// connections must have been closed.
func subsided(before resources) resources {
	tick := time.NewTicker(5 * time.Second)
	defer tick.Stop()
	for end := time.Now().Add(idle + 15*time.Second); ; <-tick.C {
		now := settled()
		if now.goroutines <= before.goroutines && now.heap <= before.heap || time.Now().After(end) {
			return now
		}
	}
}

// cycle lets a cluster join, be reconciled once and leave.
func cycle(tb testing.TB, c contender, cl *mctest.Cluster, reconciled <-chan struct{}) {
	timeout := time.After(waitLimit)
	c.join(cl)
	select {
	case <-reconciled:
	case <-timeout:
		tb.Errorf("%s has not been reconciled after %v", cl.Name(), waitLimit)
		return
	}
	c.leave(cl)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for cl.OpenWatches("") > 0 {
		select {
		case <-tick.C:
		case <-timeout:
			tb.Errorf("%s has open watches %v after it left", cl.Name(), waitLimit)
			return
		}
	}
	select {
	case <-reconciled: // again, before it left
	default:
	}
}
