// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"os"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	mccontroller "github.com/rollcall-dev/rollcall/pkg/mc/controller"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
	mcreconcile "github.com/rollcall-dev/rollcall/pkg/mc/reconcile"
)

// engagementsVariable sets the number of engagements in each subtest of
// TestManyEngagementsOfRealClusters, which takes seconds by default.
const engagementsVariable = "ROLLCALL_ENGAGEMENTS"

// concurrency is how many clusters come and go at the same time.
const concurrency = 4

// engager engages clusters with a controller until each was reconciled once.
type engager struct {
	controller mccontroller.Controller
	servers    *mctest.Fleet
	reconciled map[multicluster.ClusterName]chan struct{}
}

func newEngager(t *testing.T) *engager {
	t.Helper()
	e := &engager{
		servers: mctest.NewFleet(t, concurrency, mctest.Options{Objects: []client.Object{
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}},
		}}),
		reconciled: map[multicluster.ClusterName]chan struct{}{},
	}
	for _, server := range e.servers.Clusters() {
		e.reconciled[multicluster.ClusterName(server.Name())] = make(chan struct{}, 1)
	}
	e.controller = newController(t, reconcilerFunc(func(_ context.Context, req mcreconcile.Request) (reconcile.Result, error) {
		e.reconciled[req.ClusterName] <- struct{}{}
		return reconcile.Result{}, nil
	}), mccontroller.Options{MaxConcurrentReconciles: concurrency})
	NewWithT(t).Expect(e.controller.MultiClusterWatch(kindSource(&corev1.ConfigMap{}))).To(Succeed())
	start(t, e.controller)
	return e
}

// engage engages the cluster until it was reconciled.
func (e *engager) engage(ctx context.Context, t *testing.T, server *mctest.Cluster, cl cluster.Cluster) bool {
	name := multicluster.ClusterName(server.Name())
	ctx, leave := context.WithCancel(ctx)
	defer leave()
	if err := e.controller.Engage(ctx, name, cl); err != nil {
		t.Error(err)
		return false
	}
	select {
	case <-e.reconciled[name]:
		return true
	case <-time.After(time.Minute):
		t.Errorf("%s was not reconciled", name)
		return false
	}
}

// openWatches returns the number of watches that the servers serve.
func (e *engager) openWatches() int {
	n := 0
	for _, server := range e.servers.Clusters() {
		n += server.OpenWatches("configmaps")
	}
	return n
}

// clusters returns the number of engaged clusters.
func (e *engager) clusters() int {
	return len(e.controller.(mccontroller.StatusReporter).ClusterStatus())
}

// liveHeap returns the size of the heap after garbage collection.
func liveHeap() int64 {
	for range 3 {
		runtime.GC() // the first runs cleanups, whose garbage the next ones collect
	}
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

func TestManyEngagementsOfRealClusters(t *testing.T) {
	for _, tc := range []struct {
		name        string
		engagements int
		// prepare returns a function that engages the server's cluster once.
		prepare func(t *testing.T, e *engager, server *mctest.Cluster) (engage func() bool)
		watches int
	}{
		{
			name: "with one cache for all engagements", engagements: 10_000,
			prepare: func(t *testing.T, e *engager, server *mctest.Cluster) func() bool {
				cl := connect(t, server)
				return func() bool { return e.engage(t.Context(), t, server, cl) }
			},
			watches: concurrency,
		},
		{
			name: "with a cache for each engagement", engagements: 2000,
			prepare: func(t *testing.T, e *engager, server *mctest.Cluster) func() bool {
				// Without a client of its own, client-go may drop the transport between
				// two engagements, and closes its connections only later.
				httpClient, err := rest.HTTPClientFor(server.Config())
				NewWithT(t).Expect(err).NotTo(HaveOccurred())
				return func() bool {
					cl, err := cluster.New(server.Config(), func(o *cluster.Options) { o.HTTPClient = httpClient })
					if err != nil {
						t.Error(err)
						return false
					}
					ctx, leave := context.WithCancel(t.Context())
					var running sync.WaitGroup
					defer running.Wait()
					defer leave()
					running.Go(func() {
						if err := cl.Start(ctx); err != nil {
							t.Error(err)
						}
					})
					return e.engage(ctx, t, server, cl)
				}
			},
			watches: 0,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			g.SetDefaultEventuallyTimeout(time.Minute)
			engagements := tc.engagements
			if text := os.Getenv(engagementsVariable); text != "" {
				var err error
				engagements, err = strconv.Atoi(text)
				g.Expect(err).NotTo(HaveOccurred(), engagementsVariable)
			}
			e := newEngager(t)
			engage := make([]func() bool, concurrency)
			for i, server := range e.servers.Clusters() {
				engage[i] = tc.prepare(t, e, server)
			}
			run := func(n int) {
				var left atomic.Int64
				left.Store(int64(n))
				var all sync.WaitGroup
				for _, engage := range engage {
					all.Go(func() {
						for left.Add(-1) >= 0 && engage() {
						}
					})
				}
				all.Wait()
				g.Eventually(e.clusters).Should(BeZero())
				g.Eventually(e.openWatches).Should(Equal(tc.watches))
			}

			run(10 * concurrency) // to reach the steady state
			goroutines, heap := runtime.NumGoroutine(), liveHeap()
			began := time.Now()
			run(engagements)
			took := time.Since(began)
			g.Eventually(runtime.NumGoroutine).Should(BeNumerically("<=", goroutines))
			grown := liveHeap() - heap
			t.Logf("%d engagements in %v; goroutines %d → %d, live heap %d KB %+d KB, open watches %d",
				engagements, took.Round(time.Millisecond), goroutines, runtime.NumGoroutine(), heap/1024, grown/1024, e.openWatches())
			// A leaked engagement would take ten times that.
			g.Expect(grown).To(BeNumerically("<", 256*1024+int64(engagements)*64))
		})
	}
}
