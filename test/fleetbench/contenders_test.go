// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package fleetbench

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/rollcall-dev/rollcall/pkg/credentials"
	"github.com/rollcall-dev/rollcall/pkg/inventory"
	"github.com/rollcall-dev/rollcall/pkg/mc/fleet"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
)

// patience bounds every wait. Nothing that is measured comes near it.
const patience = 2 * time.Minute

// startBare starts a cluster for each API server, all at once, and returns when
// all have their ConfigMaps cached.
func startBare(tb testing.TB, servers []*mctest.Cluster) (stop func()) {
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

// contender is a fleet, its inventory and its credentials.
type contender struct {
	*fleet.Fleet
	events chan func(inventory.Sink)
	stop   func()

	mu      sync.Mutex // guards configs
	configs map[string]*rest.Config

	synced      atomic.Int64
	engagements atomic.Int64
	reading     sync.WaitGroup
	all         chan struct{} // closed when so many have synced as there are servers
	servers     int
}

// startFleet starts a fleet of the API servers, and returns when all have their
// ConfigMaps cached.
func startFleet(tb testing.TB, servers []*mctest.Cluster, startupLimit int) *contender {
	tb.Helper()
	c := &contender{
		events: make(chan func(inventory.Sink)), configs: map[string]*rest.Config{},
		all: make(chan struct{}), servers: len(servers),
	}
	var err error
	c.Fleet, err = fleet.New(fleet.Options{Source: c, Credentials: method{c}, Connection: fleet.ConnectionOptions{StartupLimit: startupLimit}})
	if err != nil {
		tb.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := c.Start(ctx, c); err != nil {
			tb.Error(err)
		}
	})
	c.stop = func() {
		cancel()
		running.Wait()
		c.reading.Wait()
	}
	for _, server := range servers {
		c.lead(server)
		c.put(profileOf(server))
	}
	select {
	case <-c.all:
	case <-time.After(patience):
		tb.Fatalf("%d of %d clusters are there after %v", c.synced.Load(), len(servers), patience)
	}
	return c
}

// Run implements inventory.Source.
func (c *contender) Run(ctx context.Context, sink inventory.Sink) error {
	sink.Synced()
	for {
		select {
		case <-ctx.Done():
			return nil
		case tell := <-c.events:
			tell(sink)
		}
	}
}

// Engage implements multicluster.Aware: it caches ConfigMaps.
func (c *contender) Engage(ctx context.Context, _ multicluster.ClusterName, cl cluster.Cluster) error {
	_, err := cl.GetCache().GetInformer(ctx, &corev1.ConfigMap{}, cache.BlockUntilSynced(false))
	c.engagements.Add(1)
	c.reading.Go(func() {
		if cl.GetCache().WaitForCacheSync(ctx) && c.synced.Add(1) == int64(c.servers) {
			close(c.all)
		}
	})
	return err
}

// method is the contender's credentials.Method.
type method struct{ *contender }

func (m method) Resolve(_ context.Context, profile *inventory.Profile) (*credentials.Access, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	server := profile.Status.AccessProviders[0].Cluster.Server
	config, ok := m.configs[server]
	if !ok {
		return nil, fmt.Errorf("no credentials for %q", server)
	}
	return credentials.FromRESTConfig(config), nil
}

// lead makes the address of the server lead to it.
func (c *contender) lead(server *mctest.Cluster) {
	config := server.Config()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.configs[config.Host] = config
}

func (c *contender) put(profile *inventory.Profile) {
	c.events <- func(sink inventory.Sink) { sink.Put(profile) }
}

func profileOf(server *mctest.Cluster) *inventory.Profile {
	p := &inventory.Profile{}
	p.Namespace, p.Name = "bench", server.Name()
	p.Annotations = map[string]string{inventory.AnnotationClusterName: server.Name()}
	p.Status.AccessProviders = []inventory.AccessProvider{{Name: "bench"}}
	p.Status.AccessProviders[0].Cluster.Server = server.Config().Host
	return p
}
