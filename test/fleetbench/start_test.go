// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package fleetbench

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
	"github.com/rollcall-dev/rollcall/test/internal/measure"
)

// starts measures how long it takes until all clusters are there, and what one
// costs at rest.
func starts(tb testing.TB, s size) []row {
	tb.Helper()
	servers := newServers(tb, s.clusters)
	defer closeAll(servers)
	look := func(start func() (stop func())) (took, heap, goroutines float64) {
		before, began := measure.Settled(), time.Now()
		stop := start()
		took = time.Since(began).Seconds()
		after := measure.Settled()
		stop()
		n := float64(s.clusters)
		return took, float64(after.Heap-before.Heap) / n, float64(after.Goroutines-before.Goroutines) / n
	}
	var values [6][]float64
	for round := range s.rounds {
		contestants := []func(){
			func() {
				took, heap, goroutines := look(func() func() { return startBare(tb, servers) })
				values[0], values[2], values[4] = append(values[0], took), append(values[2], heap), append(values[4], goroutines)
			},
			func() {
				took, heap, goroutines := look(func() func() { return startFleet(tb, servers, 0).stop })
				values[1], values[3], values[5] = append(values[1], took), append(values[3], heap), append(values[5], goroutines)
			},
		}
		contestants[round%2]()
		contestants[1-round%2]()
	}
	return []row{
		{name: "all clusters there", format: measure.Seconds, other: measure.Median(values[0]), fleet: measure.Median(values[1]), compare: quotient, limited: true, limit: 1.25},
		{name: "heap per cluster", format: measure.Kilobytes, other: measure.Median(values[2]), fleet: measure.Median(values[3]), compare: quotient, limited: true, limit: 0.7},
		{name: "goroutines per cluster", format: measure.Decimal, other: measure.Median(values[4]), fleet: measure.Median(values[5]), compare: difference, limited: true, limit: 3},
	}
}

// peaks measures how far the heap rises while clusters with many objects are
// listed, above what it is at the end.
func peaks(tb testing.TB, s size) []row {
	tb.Helper()
	servers := newServers(tb, s.heavy)
	defer closeAll(servers)
	text := strings.Repeat("x", 2<<10)
	for _, server := range servers {
		for i := range s.objects {
			object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprint("object-", i)}}
			object.Data = map[string]string{"text": text}
			if err := server.Create(object); err != nil {
				tb.Fatal(err)
			}
		}
	}
	above := func(startupLimit int) float64 {
		measure.Settled()
		highest := peak()
		c := startFleet(tb, servers, startupLimit)
		most := highest()
		end := measure.Settled()
		c.stop()
		return float64(most - end.Heap)
	}
	return []row{{
		name: "peak heap above the end, without the gate and with it", format: measure.Megabytes,
		other: above(-1), fleet: above(0), compare: quotient, limited: true, limit: 1,
	}}
}

// peak returns the most that the heap comes to until the function is called.
func peak() (end func() int) {
	stop, most := make(chan struct{}), make(chan int)
	go func() {
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		highest := measure.Heap()
		for {
			select {
			case <-stop:
				most <- highest
				return
			case <-tick.C:
				highest = max(highest, measure.Heap())
			}
		}
	}()
	return func() int {
		close(stop)
		return <-most
	}
}

func newServers(tb testing.TB, n int) []*mctest.Cluster {
	tb.Helper()
	return mctest.NewFleet(tb, n).Clusters()
}

func closeAll(servers []*mctest.Cluster) {
	for _, server := range servers {
		server.Close()
	}
}
