// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
)

// work is how long a reconcile waits, as one that calls API servers does.
const work = 2 * time.Millisecond

// noisyNeighbour measures the time from events of a quiet cluster to their
// reconciles, without other events and while another cluster has very many.
func noisyNeighbour(tb testing.TB, start contestant, s size) []float64 {
	tb.Helper()
	home, fleet := mctest.New(tb), newFleet(tb, 2)
	defer closeFleet(fleet)
	quiet, noisy := fleet.Cluster(0), fleet.Cluster(1)
	seen, cached, noise := newRecord(), newRecord(), newRecord()
	c := start(tb, home, observer{
		reconcile: func(o object) {
			if o.cluster == noisy.Name() {
				noise.reconcile(o)
			} else {
				seen.reconcile(o)
			}
			time.Sleep(work)
		},
		delivered: func(name string) {
			if !strings.HasPrefix(name, "noise") {
				cached.reconcile(object{quiet.Name(), name})
			}
		},
	})
	defer c.stop()
	joinAll(c, fleet.Clusters())
	seen.await(tb, 1)
	noise.await(tb, 1)

	calm := make(chan struct{})
	time.AfterFunc(s.quiet, func() { close(calm) })
	without, _ := sample(tb, quiet, seen, cached, "calm", calm)

	release := burst(tb, "noise", s.noise, noisy)
	settled()
	drained := noise.reached(1 + s.noise)
	release()
	with, queued := sample(tb, quiet, seen, cached, "loud", drained)
	return []float64{without.Seconds(), with.Seconds(), with.Seconds() / without.Seconds(), queued.Seconds()}
}

// sample creates an object every few milliseconds until end is closed. It returns
// the 99th percentiles of the times from creation to reconcile, and from the
// cache's event to reconcile.
func sample(tb testing.TB, c *mctest.Cluster, r, cached *record, name string, end <-chan struct{}) (whole, queued time.Duration) {
	tb.Helper()
	const every = 5 * time.Millisecond
	before := r.count()
	tick := time.NewTicker(every)
	defer tick.Stop()
	timeout := time.NewTimer(waitLimit)
	defer timeout.Stop()
	began := map[object]time.Time{}
	for {
		select {
		case <-tick.C:
			o := object{c.Name(), fmt.Sprintf("%s-%d", name, len(began))}
			began[o] = time.Now()
			create(tb, c, o.name)
			continue
		case <-timeout.C:
			tb.Fatalf("the sample has not ended after %v", waitLimit)
		case <-end:
		}
		break
	}
	r.await(tb, before+len(began))
	var fromCreation, fromCache []time.Duration
	for o, at := range began {
		fromCreation = append(fromCreation, r.at(o).Sub(at))
		fromCache = append(fromCache, r.at(o).Sub(cached.at(o)))
	}
	return percentile(fromCreation, 99), percentile(fromCache, 99)
}

// slowNeighbour measures how many reconciles per second all clusters but one get
// while they have more work than the workers can do. The one cluster has no
// work, or very long reconciles that begin while the others have work, or very
// long reconciles that begin while the workers have nothing else to do.
func slowNeighbour(tb testing.TB, start contestant, s size) []float64 {
	tb.Helper()
	without := othersPerSecond(tb, start, s, never)
	later := othersPerSecond(tb, start, s, afterOthers)
	first := othersPerSecond(tb, start, s, beforeOthers)
	return []float64{without, later, later / without, first, first / without}
}

// slowStart is when the slow cluster gets its work.
type slowStart int

const (
	never slowStart = iota
	afterOthers
	beforeOthers
)

func othersPerSecond(tb testing.TB, start contestant, s size, slowOnes slowStart) float64 {
	tb.Helper()
	const work = 10 * time.Millisecond
	home, fleet := mctest.New(tb), newFleet(tb, s.clusters)
	defer closeFleet(fleet)
	slow, others := fleet.Cluster(0), fleet.Clusters()[1:]
	seen, held, queued, over := newRecord(), newRecord(), newRecord(), make(chan struct{})
	c := start(tb, home, observer{
		reconcile: func(o object) {
			takes := work
			if o.cluster != slow.Name() {
				seen.reconcile(o)
			} else {
				held.reconcile(o)
				takes = s.slow
			}
			if o.name == first {
				return
			}
			select {
			case <-time.After(takes):
			case <-over:
			}
		},
		delivered: func(name string) {
			if strings.HasPrefix(name, "slow") {
				queued.reconcile(object{slow.Name(), name})
			}
		},
	})
	defer c.stop()
	defer close(over)
	joinAll(c, fleet.Clusters())
	seen.await(tb, len(others))
	held.await(tb, 1)

	// Half of the others get work before the slow cluster does. The other half
	// get enough to go on with after that.
	window, half := 3*s.slow, len(others)/2
	enough := func(d time.Duration) int { return workers*int(d/work)/half + 1 }
	early := burst(tb, "early", enough(window/10), others[:half]...)
	late := burst(tb, "late", enough(window), others[half:]...)
	slowly := burst(tb, "slow", 3*workers, slow)
	if slowOnes != beforeOthers {
		early()
		seen.await(tb, len(others)+1)
	}
	if slowOnes != never {
		slowly()
		queued.await(tb, 3*workers)
	}
	if slowOnes == beforeOthers {
		held.await(tb, workers) // the first, and one for each worker but one
		early()
	}
	late()
	if slowOnes == afterOthers {
		held.await(tb, 2)
	}
	from, began := seen.count(), time.Now()
	<-time.After(window)
	return float64(seen.count()-from) / time.Since(began).Seconds()
}
