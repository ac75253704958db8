// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
)

// starts measures the time until all clusters are ready, and what one holds at
// rest.
func starts(tb testing.TB, s fleetSize) []row {
	tb.Helper()
	servers := mctest.NewFleet(tb, s.clusters)
	defer closeFleet(servers)
	measure := func(start func() (stop func())) [3]float64 {
		before, began := settled(), time.Now()
		stop := start()
		took := time.Since(began).Seconds()
		after := settled()
		stop()
		n := float64(s.clusters)
		return [3]float64{took, float64(after.heap-before.heap) / n, float64(after.goroutines-before.goroutines) / n}
	}
	sides := []func() (stop func()){
		func() func() { return startClusters(tb, servers.Clusters()) },
		func() func() { return startFleet(tb, servers.Clusters(), s.clusters, 0).stop },
	}
	rows := []row{
		{name: "all clusters ready", format: seconds, goal: atMost(1.25)},
		{name: "heap per cluster", format: kilobytes, goal: atMost(0.7)},
		{name: "goroutines per cluster", format: decimal, compare: difference, goal: atMost(3)},
	}
	for round := range s.rounds {
		var values [2][3]float64
		for i := range sides {
			side := (i + round) % len(sides)
			values[side] = measure(sides[side])
		}
		for i := range rows {
			rows[i].other = append(rows[i].other, values[0][i])
			rows[i].rollcall = append(rows[i].rollcall, values[1][i])
		}
	}
	return rows
}

// peaks measures how far the heap rises above its final size while clusters with
// many objects are listed.
func peaks(tb testing.TB, s fleetSize) []row {
	tb.Helper()
	servers := mctest.NewFleet(tb, s.heavy)
	defer closeFleet(servers)
	text := strings.Repeat("x", 2<<10)
	for _, server := range servers.Clusters() {
		for i := range s.objects {
			object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprint("object-", i)}}
			object.Data = map[string]string{"text": text}
			if err := server.Create(object); err != nil {
				tb.Fatal(err)
			}
		}
	}
	rise := func(startupLimit int) []float64 {
		settled()
		peak := peakHeap()
		f := startFleet(tb, servers.Clusters(), s.heavy, startupLimit)
		highest := peak()
		final := settled()
		f.stop()
		return []float64{float64(highest - final.heap)}
	}
	return []row{{
		name: "heap above its final size, without a startup limit and with it", format: megabytes,
		other: rise(-1), rollcall: rise(0), goal: atMost(1),
	}}
}

// peakHeap samples the heap until the function returned is called, which returns
// the highest value.
func peakHeap() (end func() int) {
	stop, peak := make(chan struct{}), make(chan int)
	go func() {
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		highest := heap()
		for {
			select {
			case <-stop:
				peak <- highest
				return
			case <-tick.C:
				highest = max(highest, heap())
			}
		}
	}()
	return func() int {
		close(stop)
		return <-peak
	}
}
