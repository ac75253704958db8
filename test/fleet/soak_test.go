// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"context"
	"math/rand/v2"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/rollcall-dev/rollcall/pkg/mc/fleet"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
)

// soakVariable says how long the soak test takes, as Go writes durations.
const soakVariable = "ROLLCALL_SOAK"

// TestClustersGoOnWhileOneInFiveIsBroken has 160 clusters under load for ten
// seconds, or what ROLLCALL_SOAK says, beside 40 that break and mend in
// random ways.
func TestClustersGoOnWhileOneInFiveIsBroken(t *testing.T) {
	duration := 10 * time.Second
	if text := os.Getenv(soakVariable); text != "" {
		var err error
		if duration, err = time.ParseDuration(text); err != nil {
			t.Fatalf("%s: %v", soakVariable, err)
		}
	}
	const all, broken = 200, 40
	f := mctest.NewFleet(t, all)
	bad, good := f.Clusters()[:broken], f.Clusters()[broken:]
	s := newStage(t, func(o *fleet.Options) {
		// Of a machine that is busy with the rest of this, too.
		o.Connection.ConnectTimeout = 10 * time.Second
		o.Connection.Probe = fleet.ProbeOptions{Interval: 500 * time.Millisecond, Timeout: 10 * time.Second, DropAfter: 2 * time.Second}
	})
	for i, c := range bad {
		c.Fault(faults[i%len(faults)])
	}
	s.join(f.Clusters()...)
	s.awaitReady(good...)

	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	ctx, cancel := context.WithTimeout(t.Context(), duration)
	defer cancel()
	var breaking sync.WaitGroup
	for i, c := range bad {
		random := rand.New(rand.NewPCG(seed, uint64(i)))
		breaking.Go(func() { breakAndMend(ctx, s, c, random) })
	}
	beats := 0
	random := rand.New(rand.NewPCG(seed, broken))
	for ; ctx.Err() == nil; beats++ {
		random.Shuffle(len(good), func(i, j int) { good[i], good[j] = good[j], good[i] })
		s.beat(good[:20]...)
	}
	breaking.Wait()
	t.Logf("%d rounds of reconciles beside broken clusters", beats)

	for _, c := range bad {
		c.Clear()
	}
	s.awaitReady(f.Clusters()...)
	s.beat(f.Clusters()...)
	s.goodUntouched(good)
	s.nothingIsLeft(f.Clusters()...)
}

// faults are those that clusters have in the soak test.
var faults = []mctest.Fault{
	mctest.Hang, mctest.Freeze, mctest.Refuse, mctest.Reset, mctest.Unauthorized, mctest.Unavailable,
	mctest.TooManyRequests(time.Second), mctest.Expired, mctest.Slow(300 * time.Millisecond),
	mctest.Hang.On("configmaps"), mctest.Forbidden.On("configmaps"), mctest.Hang.On("/apis", "/api/v1"),
}

// breakAndMend breaks the cluster in one way after the other, mends it in
// between, takes it off the roll and back.
func breakAndMend(ctx context.Context, s *stage, c *mctest.Cluster, random *rand.Rand) {
	pause := func() {
		select {
		case <-ctx.Done():
		case <-time.After(time.Duration(random.IntN(1500)) * time.Millisecond):
		}
	}
	for ctx.Err() == nil {
		switch random.IntN(8) {
		case 0:
			s.leave(c)
			pause()
			s.join(c)
		case 1:
			c.Clear()
		case 2:
			c.CloseConnections()
		case 3:
			c.Move()
			s.join(c)
		default:
			c.Fault(faults[random.IntN(len(faults))])
		}
		pause()
	}
}
