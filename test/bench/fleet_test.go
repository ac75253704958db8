// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/rollcall-dev/rollcall/pkg/inventory"
	"github.com/rollcall-dev/rollcall/pkg/mc/fleet"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
	"github.com/rollcall-dev/rollcall/test/internal/inmemory"
)

// benchFleet is a fleet that caches the ConfigMaps of its clusters, with an
// inventory in memory.
type benchFleet struct {
	*fleet.Fleet
	inventory *inmemory.Inventory
	stop      func()

	engagements atomic.Int64
	synced      atomic.Int64
	syncing     sync.WaitGroup
	expected    int
	complete    chan struct{} // closed when expected clusters have synced
}

// startFleet starts a fleet of the servers, and returns when the ConfigMaps of
// so many are cached as are expected.
func startFleet(tb testing.TB, servers []*mctest.Cluster, expected, startupLimit int, change ...func(*fleet.ConnectionOptions)) *benchFleet {
	tb.Helper()
	f := &benchFleet{inventory: inmemory.New(), expected: expected, complete: make(chan struct{})}
	connection := fleet.ConnectionOptions{StartupLimit: startupLimit}
	for _, c := range change {
		c(&connection)
	}
	var err error
	f.Fleet, err = fleet.New(fleet.Options{Source: f.inventory, Credentials: f.inventory, Connection: connection})
	if err != nil {
		tb.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := f.Start(ctx, f); err != nil {
			tb.Error(err)
		}
	})
	f.stop = func() {
		cancel()
		running.Wait()
		f.syncing.Wait()
	}
	for _, server := range servers {
		f.put(server)
	}
	if expected == 0 {
		return f
	}
	select {
	case <-f.complete:
	case <-time.After(waitLimit):
		tb.Fatalf("%d of %d clusters are ready after %v", f.synced.Load(), expected, waitLimit)
	}
	return f
}

// put connects the server's current address, and puts it into the profile.
func (f *benchFleet) put(server *mctest.Cluster) {
	config := server.Config()
	f.inventory.Connect(config.Host, config)
	f.inventory.Put(profileAt(server))
}

// profileAt returns a profile with the server's current address.
func profileAt(server *mctest.Cluster) *inventory.Profile {
	return inmemory.Profile(server.Name(), server.Config().Host)
}

// Engage implements multicluster.Aware. Like a source of a controller, the informer
// keeps the cluster's startup slot until it has synced.
func (f *benchFleet) Engage(ctx context.Context, _ multicluster.ClusterName, cl cluster.Cluster) error {
	informer, err := cl.GetCache().GetInformer(ctx, &corev1.ConfigMap{}, cache.BlockUntilSynced(false))
	if err != nil {
		return err
	}
	f.engagements.Add(1)
	start := multicluster.EngagementFrom(ctx).RequestStart()
	// WaitForCacheSync polls every 100 ms, which is longer than the list takes.
	synced := informer.(interface{ HasSyncedChecker() toolscache.DoneChecker }).HasSyncedChecker().Done()
	f.syncing.Go(func() {
		defer start.Release()
		select {
		case <-synced:
			if f.synced.Add(1) == int64(f.expected) {
				close(f.complete)
			}
		case <-ctx.Done():
		}
	})
	return nil
}

// startClusters starts a controller-runtime cluster for each server, all at
// once, and returns when all have their ConfigMaps cached.
func startClusters(tb testing.TB, servers []*mctest.Cluster) (stop func()) {
	tb.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var running, starting sync.WaitGroup
	for _, server := range servers {
		starting.Go(func() {
			cl, err := cluster.New(server.Config())
			if err != nil {
				tb.Error(err)
				return
			}
			running.Go(func() {
				_ = cl.Start(ctx)
				cl.GetHTTPClient().CloseIdleConnections()
			})
			if _, err := cl.GetCache().GetInformer(ctx, &corev1.ConfigMap{}, cache.BlockUntilSynced(true)); err != nil {
				tb.Error(err)
			}
		})
	}
	starting.Wait()
	return func() {
		cancel()
		running.Wait()
	}
}
