// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package namespace_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
	"github.com/rollcall-dev/rollcall/providers/namespace"
)

// TestManyNamespaces checks that a namespace sends no request of its own, and logs what it
// costs.
func TestManyNamespaces(t *testing.T) {
	const count = 300
	g := NewWithT(t)
	server := mctest.New(t)
	env := start(t, server, namespace.Options{})
	env.engaged(g, "kube-system")
	before, goroutines := heap(), runtime.NumGoroutine()
	began := time.Now()
	for i := range count {
		name := fmt.Sprintf("n%03d", i)
		g.Expect(server.Create(ns(name), configMap(name, "x"))).To(Succeed())
	}
	g.Eventually(func() int { return len(env.reconciled()) }).Should(Equal(count))
	took := time.Since(began)
	g.Eventually(func() error { return env.ReadyCheck(1)(nil) }).Should(Succeed())
	t.Logf("%d namespaces reconciled in %v; each: %d KiB of heap with its server's objects, %.1f goroutines", count, took.Round(time.Millisecond),
		(heap()-before)/count/1024, float64(runtime.NumGoroutine()-goroutines)/count)
	g.Expect(server.OpenWatches("configmaps")).To(Equal(1))
	g.Expect(server.OpenWatches("namespaces")).To(Equal(1))
	g.Expect(server.Requests("get", "namespaces")).To(BeNumerically("<", 20), "one probe for all")
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapInuse + stats.StackInuse
}
