// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rollcall-dev/rollcall/pkg/inventory"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
)

// running measures a fleet whose clusters are ready.
func running(tb testing.TB, s fleetSize) []row {
	tb.Helper()
	fleet := mctest.NewFleet(tb, s.clusters)
	defer closeFleet(fleet)
	servers := fleet.Clusters()
	f := startFleet(tb, servers, len(servers), 0)
	defer f.stop()
	rows := heartbeats(tb, s, f, servers)
	rows = append(rows, gets(tb, s, f, servers)...)
	return append(rows, moves(tb, f, servers)...)
}

// heartbeats puts a thousand profiles a second with changed conditions.
func heartbeats(tb testing.TB, s fleetSize, f *benchFleet, servers []*mctest.Cluster) []row {
	tb.Helper()
	const burst, every = 10, 10 * time.Millisecond
	load := func(beat func(i int)) []float64 {
		tick := time.NewTicker(every)
		defer tick.Stop()
		began, before := time.Now(), cpuTime()
		for i := 0; time.Since(began) < s.beats; i++ {
			<-tick.C
			beat(i)
		}
		return []float64{float64(cpuTime()-before) / float64(time.Since(began)) / float64(runtime.NumCPU())}
	}
	engagements := f.engagements.Load()
	// The profiles are made while idle, too: that is not the fleet's work.
	beat := func(put func(...*inventory.Profile)) func(int) {
		return func(i int) {
			for j := range burst {
				p := profileAt(servers[(i*burst+j)%len(servers)])
				p.Status.Conditions = []metav1.Condition{{Type: "ControlPlaneHealthy", Status: metav1.ConditionTrue, Message: fmt.Sprint(i)}}
				put(p)
			}
		}
	}
	idle := load(beat(func(...*inventory.Profile) {}))
	beats := load(beat(f.inventory.Put))
	return []row{
		single("1,000 heartbeats/s: re-engagements", integer, none, float64(f.engagements.Load()-engagements)),
		{name: "1,000 heartbeats/s: share of the processors, beside idle", format: percent, other: idle, rollcall: beats, compare: difference, goal: atMost(0.05)},
	}
}

// gets lets four goroutines for each processor get clusters.
func gets(tb testing.TB, s fleetSize, f *benchFleet, servers []*mctest.Cluster) []row {
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
				if _, err := f.Get(tb.Context(), names[(g+i)%len(names)]); err != nil {
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
		single("Get under contention", nanoseconds, nil, took.Seconds()/n*float64(runtime.NumCPU())),
		single("Get under contention: allocations", integer, atMost(0), float64((after.Mallocs-before.Mallocs)/uint64(n))),
	}
}

// moves moves all API servers to other addresses.
func moves(tb testing.TB, f *benchFleet, servers []*mctest.Cluster) []row {
	tb.Helper()
	lists := func() (n int) {
		for _, server := range servers {
			n += server.Requests("list", "configmaps")
		}
		return n
	}
	before, engagements := lists(), f.engagements.Load()
	for _, server := range servers {
		server.Move()
	}
	began := time.Now()
	for _, server := range servers {
		f.put(server)
	}
	await(tb, servers, "connected to its new address", func(server *mctest.Cluster) bool {
		cl, err := f.Get(tb.Context(), multicluster.ClusterName(server.Name()))
		return err == nil && cl.GetConfig().Host == server.Config().Host
	})
	changed := time.Since(began)
	await(tb, servers, "watched", func(server *mctest.Cluster) bool { return server.OpenWatches("configmaps") == 1 })
	resumed := time.Since(began)
	return []row{
		single("all endpoints changed", seconds, nil, changed.Seconds()),
		single("  all watches resumed", seconds, nil, resumed.Seconds()),
		single("  LISTs", integer, none, float64(lists()-before)),
		single("  re-engagements", integer, none, float64(f.engagements.Load()-engagements)),
	}
}

// await waits until a condition holds for all servers.
func await(tb testing.TB, servers []*mctest.Cluster, what string, holds func(*mctest.Cluster) bool) {
	tb.Helper()
	deadline := time.Now().Add(waitLimit)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for _, server := range servers {
		for !holds(server) {
			if time.Now().After(deadline) {
				tb.Fatalf("%s is not %s after %v", server.Name(), what, waitLimit)
			}
			<-tick.C
		}
	}
}
