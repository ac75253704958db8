// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package mctest_test

import (
	"runtime"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/kubernetes"

	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
)

// footprint returns the bytes of heap and the goroutines that a number of idle
// clusters add.
func footprint(tb testing.TB, n int) (heap, goroutines int) {
	tb.Helper()
	mctest.New(tb).Close() // What clusters share is not counted.
	bytes, before := live(), runtime.NumGoroutine()
	f := mctest.NewFleet(tb, n)
	heap, goroutines = live()-bytes, runtime.NumGoroutine()-before
	for _, c := range f.Clusters() {
		c.Close()
	}
	return heap, goroutines
}

// live returns the size of the heap without garbage.
func live() int {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

func TestFootprint(t *testing.T) {
	const n = 50
	g := NewWithT(t)
	heap, goroutines := footprint(t, n)
	t.Logf("%d bytes and %d goroutine(s) per cluster", heap/n, goroutines/n)
	g.Expect(heap / n).To(BeNumerically("<", 100<<10))
	g.Expect(goroutines).To(Equal(n))
}

// BenchmarkClusterFootprint measures an idle cluster.
func BenchmarkClusterFootprint(b *testing.B) {
	const n = 100
	for b.Loop() {
		heap, goroutines := footprint(b, n)
		b.ReportMetric(float64(heap)/n, "heap-B/cluster")
		b.ReportMetric(float64(goroutines)/n, "goroutines/cluster")
	}
}

// BenchmarkNew measures the start of a cluster.
func BenchmarkNew(b *testing.B) {
	for b.Loop() {
		mctest.New(b).Close()
	}
}

// BenchmarkGet measures a request, client and TLS included.
func BenchmarkGet(b *testing.B) {
	cs := kubernetes.NewForConfigOrDie(mctest.New(b).Config())
	for b.Loop() {
		if err := cs.CoreV1().RESTClient().Get().AbsPath("/api/v1/namespaces/default").Do(b.Context()).Error(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkCreate measures a write without HTTP.
func BenchmarkCreate(b *testing.B) {
	c := mctest.New(b)
	for b.Loop() {
		cm := newConfigMap("")
		cm.GenerateName = "a-"
		if err := c.Create(cm); err != nil {
			b.Fatal(err)
		}
	}
}
