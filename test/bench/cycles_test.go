// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"sync"
	"testing"
	"time"

	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
	"github.com/rollcall-dev/rollcall/test/internal/measure"
)

// together is how many clusters join and leave at the same time.
const together = 10

// cycles has clusters join, be reconciled and leave, over and over, and looks
// at what remains.
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
	before, began := measure.Settled(), time.Now()
	run(each)
	took, first := time.Since(began), measure.Settled()
	watches := 0
	for _, cl := range fleet.Clusters() {
		watches += cl.OpenWatches("")
	}
	last := first
	if each*together >= full.cycles {
		last = subsided(before)
	}
	perCycle := func(r measure.Resources) float64 { return float64(r.Heap-before.Heap) / float64(each*together) }
	return []float64{
		took.Seconds() / float64(each),
		float64(last.Goroutines - before.Goroutines),
		float64(watches),
		perCycle(last), perCycle(first),
	}
}

// idle is how long net/http keeps a connection that is not used.
const idle = 90 * time.Second

// subsided waits until the process holds no more than before, or until what is
// left is there to stay.
func subsided(before measure.Resources) measure.Resources {
	look := time.NewTicker(5 * time.Second)
	defer look.Stop()
	for end := time.Now().Add(idle + 15*time.Second); ; <-look.C {
		now := measure.Settled()
		if now.Goroutines <= before.Goroutines && now.Heap <= before.Heap || time.Now().After(end) {
			return now
		}
	}
}

// cycle has a cluster join, be reconciled once and leave.
func cycle(tb testing.TB, c contender, cl *mctest.Cluster, reconciled <-chan struct{}) {
	timeout := time.After(patience)
	c.join(cl)
	select {
	case <-reconciled:
	case <-timeout:
		tb.Errorf("%s has not been reconciled after %v", cl.Name(), patience)
		return
	}
	c.leave(cl)
	look := time.NewTicker(time.Millisecond)
	defer look.Stop()
	for cl.OpenWatches("") > 0 {
		select {
		case <-look.C:
		case <-timeout:
			tb.Errorf("%s has open watches %v after it left", cl.Name(), patience)
			return
		}
	}
	select {
	case <-reconciled: // again, before it left
	default:
	}
}
