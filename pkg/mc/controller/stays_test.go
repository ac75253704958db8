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

// staysVariable says how many stays each part of the test of stays has, where
// that is to be more than what takes some seconds.
const staysVariable = "ROLLCALL_STAYS"

// guests is how many clusters come and go at the same time.
const guests = 4

// hotel is a controller with which clusters stay until each was reconciled once.
type hotel struct {
	controller mccontroller.Controller
	servers    *mctest.Fleet
	reconciled map[multicluster.ClusterName]chan struct{}
}

func newHotel(t *testing.T) *hotel {
	t.Helper()
	h := &hotel{
		servers: mctest.NewFleet(t, guests, mctest.Options{Objects: []client.Object{
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}},
		}}),
		reconciled: map[multicluster.ClusterName]chan struct{}{},
	}
	for _, server := range h.servers.Clusters() {
		h.reconciled[multicluster.ClusterName(server.Name())] = make(chan struct{}, 1)
	}
	h.controller = newController(t, reconcilerFunc(func(_ context.Context, req mcreconcile.Request) (reconcile.Result, error) {
		h.reconciled[req.ClusterName] <- struct{}{}
		return reconcile.Result{}, nil
	}), mccontroller.Options{MaxConcurrentReconciles: guests})
	NewWithT(t).Expect(h.controller.MultiClusterWatch(kindSource(&corev1.ConfigMap{}))).To(Succeed())
	start(t, h.controller)
	return h
}

// stay engages the cluster until it was reconciled.
func (h *hotel) stay(ctx context.Context, t *testing.T, server *mctest.Cluster, cl cluster.Cluster) bool {
	name := multicluster.ClusterName(server.Name())
	ctx, leave := context.WithCancel(ctx)
	defer leave()
	if err := h.controller.Engage(ctx, name, cl); err != nil {
		t.Error(err)
		return false
	}
	select {
	case <-h.reconciled[name]:
		return true
	case <-time.After(time.Minute):
		t.Errorf("%s was not reconciled", name)
		return false
	}
}

// openWatches counts what the servers serve, and clusters the guests.
func (h *hotel) openWatches() int {
	n := 0
	for _, server := range h.servers.Clusters() {
		n += server.OpenWatches("configmaps")
	}
	return n
}

func (h *hotel) clusters() int {
	return len(h.controller.(mccontroller.StatusReporter).ClusterStatus())
}

// liveHeap is what is still used when all has been collected that can be.
func liveHeap() int64 {
	for range 3 {
		runtime.GC() // what the first makes unreachable goes with those that follow
	}
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

func TestManyStaysOfRealClustersLeaveNothingBehind(t *testing.T) {
	for _, tc := range []struct {
		name  string
		stays int
		// guest returns what has the server's cluster stay once.
		guest   func(t *testing.T, h *hotel, server *mctest.Cluster) (stay func() bool)
		watches int
	}{
		{
			name: "where a cluster's cache outlives its stays", stays: 10_000,
			guest: func(t *testing.T, h *hotel, server *mctest.Cluster) func() bool {
				cl := connect(t, server)
				return func() bool { return h.stay(t.Context(), t, server, cl) }
			},
			watches: guests,
		},
		{
			name: "where each stay has a cache of its own", stays: 2000,
			guest: func(t *testing.T, h *hotel, server *mctest.Cluster) func() bool {
				// client-go drops transports between two stays as it likes, and leaves
				// it to time to close their connections.
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
					return h.stay(ctx, t, server, cl)
				}
			},
			watches: 0,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			g.SetDefaultEventuallyTimeout(time.Minute)
			stays := tc.stays
			if text := os.Getenv(staysVariable); text != "" {
				var err error
				stays, err = strconv.Atoi(text)
				g.Expect(err).NotTo(HaveOccurred(), staysVariable)
			}
			h := newHotel(t)
			guest := make([]func() bool, guests)
			for i, server := range h.servers.Clusters() {
				guest[i] = tc.guest(t, h, server)
			}
			have := func(n int) {
				var left atomic.Int64
				left.Store(int64(n))
				var all sync.WaitGroup
				for _, stay := range guest {
					all.Go(func() {
						for left.Add(-1) >= 0 && stay() {
						}
					})
				}
				all.Wait()
				g.Eventually(h.clusters).Should(BeZero())
				g.Eventually(h.openWatches).Should(Equal(tc.watches))
			}

			have(10 * guests) // so that all is there that stays for good
			goroutines, heap := runtime.NumGoroutine(), liveHeap()
			began := time.Now()
			have(stays)
			took := time.Since(began)
			g.Eventually(runtime.NumGoroutine).Should(BeNumerically("<=", goroutines))
			grown := liveHeap() - heap
			t.Logf("%d stays in %v; goroutines %d → %d, live heap %d KB %+d KB, open watches %d",
				stays, took.Round(time.Millisecond), goroutines, runtime.NumGoroutine(), heap/1024, grown/1024, h.openWatches())
			// What one stay would leave if it left its engagement is ten times that.
			g.Expect(grown).To(BeNumerically("<", 256*1024+int64(stays)*64))
		})
	}
}
