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

// footprint is what a number of clusters at rest add to the heap, in bytes, and
// to the goroutines.
func footprint(tb testing.TB, n int) (heap, goroutines int) {
	tb.Helper()
	mctest.New(tb).Close() // What clusters share is not their own.
	bytes, before := live(), runtime.NumGoroutine()
	f := mctest.NewFleet(tb, n)
	heap, goroutines = live()-bytes, runtime.NumGoroutine()-before
	for _, c := range f.Clusters() {
		c.Close()
	}
	return heap, goroutines
}

// live is the size of the heap without garbage.
func live() int {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

func TestAClusterAtRestIsSmall(t *testing.T) {
	const n = 50
	g := NewWithT(t)
	heap, goroutines := footprint(t, n)
	t.Logf("%d bytes and %d goroutine(s) per cluster", heap/n, goroutines/n)
	g.Expect(heap / n).To(BeNumerically("<", 100<<10))
	g.Expect(goroutines).To(Equal(n))
}

// BenchmarkClusterFootprint tells what a cluster at rest holds.
func BenchmarkClusterFootprint(b *testing.B) {
	const n = 100
	for b.Loop() {
		heap, goroutines := footprint(b, n)
		b.ReportMetric(float64(heap)/n, "heap-B/cluster")
		b.ReportMetric(float64(goroutines)/n, "goroutines/cluster")
	}
}

// BenchmarkNew tells how long a cluster takes to start.
func BenchmarkNew(b *testing.B) {
	for b.Loop() {
		mctest.New(b).Close()
	}
}

// BenchmarkGet tells what a request costs, client and TLS included.
func BenchmarkGet(b *testing.B) {
	cs := kubernetes.NewForConfigOrDie(mctest.New(b).Config())
	for b.Loop() {
		if err := cs.CoreV1().RESTClient().Get().AbsPath("/api/v1/namespaces/default").Do(b.Context()).Error(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkCreate tells what a write costs without HTTP.
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
