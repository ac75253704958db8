// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

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

// soakVariable sets the duration of the soak test, such as 10m.
const soakVariable = "ROLLCALL_SOAK"

// TestSoak puts 160 clusters under load for ten seconds, or for ROLLCALL_SOAK,
// while 40 others fail and recover at random.
func TestSoak(t *testing.T) {
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
	e := newEnv(t, func(o *fleet.Options) {
		// Enough for a machine that is busy with the rest of this.
		o.Connection.ConnectTimeout = 10 * time.Second
		o.Connection.Probe = fleet.ProbeOptions{Interval: 500 * time.Millisecond, Timeout: 10 * time.Second, DropAfter: 2 * time.Second}
	})
	for i, c := range bad {
		c.Fault(faults[i%len(faults)])
	}
	e.Add(f.Clusters()...)
	e.awaitReady(good...)

	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	ctx, cancel := context.WithTimeout(t.Context(), duration)
	defer cancel()
	var breaking sync.WaitGroup
	for i, c := range bad {
		random := rand.New(rand.NewPCG(seed, uint64(i)))
		breaking.Go(func() { breakAndRepair(ctx, e, c, random) })
	}
	reconciled := 0
	random := rand.New(rand.NewPCG(seed, broken))
	for ; ctx.Err() == nil; reconciled++ {
		random.Shuffle(len(good), func(i, j int) { good[i], good[j] = good[j], good[i] })
		e.checkReconciles(good[:20]...)
	}
	breaking.Wait()
	t.Logf("%d rounds of reconciles beside broken clusters", reconciled)

	for _, c := range bad {
		c.Clear()
	}
	e.awaitReady(f.Clusters()...)
	e.checkReconciles(f.Clusters()...)
	e.checkUndisturbed(good...)
	e.stopAndCheck(f.Clusters()...)
}

// faults are those of the soak test.
var faults = []mctest.Fault{
	mctest.Hang, mctest.Freeze, mctest.Refuse, mctest.Reset, mctest.Unauthorized, mctest.Unavailable,
	mctest.TooManyRequests(time.Second), mctest.Expired, mctest.Slow(300 * time.Millisecond),
	mctest.Hang.On("configmaps"), mctest.Forbidden.On("configmaps"), mctest.Hang.On("/apis", "/api/v1"),
}

// breakAndRepair puts one fault after the other on the cluster, clears them in
// between, moves the cluster, and removes its profile and adds it again.
func breakAndRepair(ctx context.Context, e *env, c *mctest.Cluster, random *rand.Rand) {
	pause := func() {
		select {
		case <-ctx.Done():
		case <-time.After(time.Duration(random.IntN(1500)) * time.Millisecond):
		}
	}
	for ctx.Err() == nil {
		switch random.IntN(8) {
		case 0:
			e.Remove(c)
			pause()
			e.Add(c)
		case 1:
			c.Clear()
		case 2:
			c.CloseConnections()
		case 3:
			c.Move()
			e.Add(c)
		default:
			c.Fault(faults[random.IntN(len(faults))])
		}
		pause()
	}
}
