// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package fleetbench

import (
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
	"github.com/rollcall-dev/rollcall/test/internal/measure"
)

// running measures a fleet that is there.
func running(tb testing.TB, s size) []row {
	tb.Helper()
	servers := newServers(tb, s.clusters)
	defer closeAll(servers)
	c := startFleet(tb, servers, 0)
	defer c.stop()
	rows := heartbeats(tb, s, c, servers)
	rows = append(rows, gets(tb, s, c, servers)...)
	return append(rows, swaps(tb, c, servers)...)
}

// heartbeats has a thousand profiles a second come with other conditions.
func heartbeats(tb testing.TB, s size, c *contender, servers []*mctest.Cluster) []row {
	tb.Helper()
	const burst, every = 10, 10 * time.Millisecond
	share := func(beat func(i int)) float64 {
		tick := time.NewTicker(every)
		defer tick.Stop()
		began, before := time.Now(), measure.CPUTime()
		for i := 0; time.Since(began) < s.beats; i++ {
			<-tick.C
			beat(i)
		}
		return float64(measure.CPUTime()-before) / float64(time.Since(began)) / float64(runtime.NumCPU())
	}
	engagements := c.engagements.Load()
	idle := share(func(int) {})
	beats := share(func(i int) {
		for j := range burst {
			p := profileOf(servers[(i*burst+j)%len(servers)])
			p.Status.Conditions = []metav1.Condition{{Type: "ControlPlaneHealthy", Status: metav1.ConditionTrue, Message: fmt.Sprint(i)}}
			c.put(p)
		}
	})
	return []row{
		{name: "1,000 heartbeats/s: re-engagements", format: measure.Integer, fleet: float64(c.engagements.Load() - engagements), limited: true, exact: true},
		{name: "1,000 heartbeats/s: share of the processors, beside idle", format: measure.Percent, other: idle, fleet: beats, compare: difference, limited: true, limit: 0.05},
	}
}

// gets has as many goroutines as there are processors, and four times so many,
// get clusters.
func gets(tb testing.TB, s size, c *contender, servers []*mctest.Cluster) []row {
	tb.Helper()
	names := make([]multicluster.ClusterName, len(servers))
	for i := range servers {
		names[i] = multicluster.ClusterName(servers[i].Name())
	}
	var before, after runtime.MemStats
	goroutines := 4 * runtime.NumCPU()
	var getting sync.WaitGroup
	runtime.ReadMemStats(&before)
	began := time.Now()
	for g := range goroutines {
		getting.Go(func() {
			for i := range s.gets {
				if _, err := c.Get(tb.Context(), names[(g+i)%len(names)]); err != nil {
					tb.Error(err)
					return
				}
			}
		})
	}
	getting.Wait()
	took := time.Since(began)
	runtime.ReadMemStats(&after)
	n := float64(goroutines * s.gets)
	return []row{
		{name: "Get under contention", format: measure.Nanoseconds, fleet: took.Seconds() / n * float64(runtime.NumCPU())},
		{name: "Get under contention: allocations", format: measure.Integer, fleet: float64((after.Mallocs - before.Mallocs) / uint64(n)), limited: true},
	}
}

// swaps moves all API servers to other addresses.
func swaps(tb testing.TB, c *contender, servers []*mctest.Cluster) []row {
	tb.Helper()
	lists := func() (n int) {
		for _, server := range servers {
			n += server.Requests("list", "configmaps")
		}
		return n
	}
	before, engagements := lists(), c.engagements.Load()
	for _, server := range servers {
		server.Move()
	}
	began := time.Now()
	for _, server := range servers {
		c.lead(server)
		c.put(profileOf(server))
	}
	exchanged := func(server *mctest.Cluster) bool {
		cl, err := c.Get(tb.Context(), multicluster.ClusterName(server.Name()))
		return err == nil && cl.GetConfig().Host == server.Config().Host
	}
	await(tb, servers, exchanged)
	took := time.Since(began)
	await(tb, servers, func(server *mctest.Cluster) bool { return server.OpenWatches("configmaps") == 1 })
	resumed := time.Since(began)
	return []row{
		{name: "all endpoints exchanged", format: measure.Seconds, fleet: took.Seconds()},
		{name: "  all watches resumed", format: measure.Seconds, fleet: resumed.Seconds()},
		{name: "  LISTs", format: measure.Integer, fleet: float64(lists() - before), limited: true, exact: true},
		{name: "  re-engagements", format: measure.Integer, fleet: float64(c.engagements.Load() - engagements), limited: true, exact: true},
	}
}

// await waits until it is so for all servers.
func await(tb testing.TB, servers []*mctest.Cluster, so func(*mctest.Cluster) bool) {
	tb.Helper()
	deadline := time.Now().Add(patience)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for _, server := range servers {
		for !so(server) {
			if time.Now().After(deadline) {
				tb.Fatalf("%s is not so far after %v", server.Name(), patience)
			}
			<-tick.C
		}
	}
}
