// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/rollcall-dev/rollcall/pkg/inventory"
	"github.com/rollcall-dev/rollcall/pkg/mc/fleet"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
)

// slowConnector is a Connector to fake clusters that need time to respond. Those
// with the server "hangs" never respond.
type slowConnector struct {
	response time.Duration // of a probe
	list     time.Duration // of a source
	silent   *atomic.Bool  // if true, no cluster responds; may be nil
}

func (i slowConnector) Connect(_ context.Context, p *inventory.Profile) (*fleet.Connection, error) {
	return &fleet.Connection{
		Cluster: fakeCluster{},
		Probe: func(ctx context.Context) (string, error) {
			if serverOf(p) == hangs || i.silent != nil && i.silent.Load() {
				<-ctx.Done()
				return "", ctx.Err()
			}
			time.Sleep(i.response)
			return p.Name, nil
		},
	}, nil
}

type fakeCluster struct{ cluster.Cluster }

func (fakeCluster) Start(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

func (fakeCluster) GetCache() cache.Cache { return fakeCache{} }

func (fakeCluster) GetFieldIndexer() client.FieldIndexer { return fakeCache{} }

type fakeCache struct{ cache.Cache }

func (fakeCache) WaitForCacheSync(context.Context) bool { return true }

// The servers of clusters that are not healthy.
const (
	hangs     = "hangs"     // never responds
	missing   = "missing"   // does not have the kind of the source: its start fails
	forbidden = "forbidden" // does not allow to list the kind: its source never syncs
)

// listingAware starts one source in each cluster that needs time to list.
type listingAware struct {
	*awareRecorder
	list  time.Duration
	left  atomic.Int32 // healthy clusters that are not listed
	ready chan struct{}
}

func (r *listingAware) Engage(ctx context.Context, name multicluster.ClusterName, cl cluster.Cluster) error {
	p, _ := fleet.ProfileFrom(cl)
	engagement := multicluster.EngagementFrom(ctx)
	first := engagement.RequestStart()
	go func() {
		for start := first; r.start(ctx, start, serverOf(p)) != nil; start = engagement.RequestStart() {
			sleep(ctx, 5*time.Second)
		}
	}()
	return r.awareRecorder.Engage(ctx, name, cl)
}

// start starts the source. An error is retried.
func (r *listingAware) start(ctx context.Context, start multicluster.StartRequest, server string) error {
	defer start.Release()
	if start.Wait(ctx) != nil {
		return nil
	}
	switch server {
	case missing:
		return errors.New("no matches for kind")
	case forbidden:
		return nil // its informer reports that at once
	}
	sleep(ctx, r.list)
	if ctx.Err() == nil && r.left.Add(-1) == 0 {
		close(r.ready)
	}
	return nil
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// healthy is the server of healthy clusters.
const healthy = "healthy"

// timeToList returns how long a fleet with default options needs until all healthy
// clusters are listed. The clusters have these servers, and are added in this order.
func timeToList(t *testing.T, i slowConnector, servers []string) (took time.Duration) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		aware := &listingAware{list: i.list, ready: make(chan struct{})}
		env := startWith(t, nil, func(e *awareRecorder) multicluster.Aware {
			aware.awareRecorder = e
			return aware
		}, withConnector(i), func(o *fleet.Options) {
			o.Connection.ConnectTimeout, o.Connection.MinBackoff, o.Connection.MaxBackoff = 0, 0, 0 // their defaults
		})
		all := make([]*inventory.Profile, len(servers))
		for n, server := range servers {
			if server == healthy {
				aware.left.Add(1)
			}
			all[n] = profile(fmt.Sprintf("c%d", n), server)
		}
		began := time.Now()
		env.source.put(all...)
		<-aware.ready
		took = time.Since(began)
		env.stop()
	})
	return took
}

// delay returns how much longer the healthy clusters need than without the others.
func delay(t *testing.T, i slowConnector, servers []string) (ratio float64) {
	t.Helper()
	without := timeToList(t, i, slices.DeleteFunc(slices.Clone(servers), func(server string) bool { return server != healthy }))
	with := timeToList(t, i, servers)
	ratio = float64(with) / float64(without)
	t.Logf("only healthy clusters %v, with the others %v: %.2f", without, with, ratio)
	return ratio
}

func TestHangingClustersDelayFew(t *testing.T) {
	servers := make([]string, 2000)
	for n := range servers {
		servers[n] = healthy
		if n%20 == 19 {
			servers[n] = hangs
		}
	}
	for _, i := range []slowConnector{
		{response: 5 * time.Millisecond, list: 5 * time.Millisecond},
		{response: 5 * time.Millisecond, list: 200 * time.Millisecond},
		{response: 100 * time.Millisecond, list: 100 * time.Millisecond},
		{response: 400 * time.Millisecond, list: 10 * time.Millisecond},
		{response: 300 * time.Millisecond, list: 2 * time.Second},
		{response: 900 * time.Millisecond, list: 900 * time.Millisecond},
	} {
		t.Run(fmt.Sprintf("responses take %v, lists %v", i.response, i.list), func(t *testing.T) {
			if ratio := delay(t, i, servers); ratio >= 1.2 {
				t.Errorf("100 hanging clusters delay 1900 others by the factor %.2f, want less than 1.2", ratio)
			}
		})
	}
}

// 96 clusters in which no source can sync are added before 8 healthy ones.
func TestUnusableKindsDelayFew(t *testing.T) {
	for _, tc := range []struct {
		kind           string
		response, list time.Duration
	}{
		{missing, 5 * time.Millisecond, 200 * time.Millisecond},
		{missing, 50 * time.Millisecond, 2 * time.Second},
		{missing, 50 * time.Millisecond, 20 * time.Second},
		{forbidden, 5 * time.Millisecond, 200 * time.Millisecond},
		{forbidden, 50 * time.Millisecond, 20 * time.Second},
	} {
		t.Run(fmt.Sprintf("%s, responses take %v, lists %v", tc.kind, tc.response, tc.list), func(t *testing.T) {
			servers := slices.Concat(slices.Repeat([]string{tc.kind}, 96), slices.Repeat([]string{healthy}, 8))
			if ratio := delay(t, slowConnector{response: tc.response, list: tc.list}, servers); ratio > 1.1 {
				t.Errorf("96 clusters delay 8 others by the factor %.2f, want 1.1 at most", ratio)
			}
		})
	}
}

// countingConnector is a Connector that needs time and counts calls.
type countingConnector struct {
	slowConnector
	changed chan func()

	mu              sync.Mutex // guards what follows
	now, most, done int
}

func (s *countingConnector) NotifyChange(_ context.Context, changed func()) { s.changed <- changed }

func (s *countingConnector) Connect(ctx context.Context, p *inventory.Profile) (*fleet.Connection, error) {
	s.add(1)
	defer s.add(-1)
	time.Sleep(100 * time.Millisecond)
	c, err := s.slowConnector.Connect(ctx, p)
	c.Fingerprint = "equal"
	return c, err
}

func (s *countingConnector) add(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now += n
	s.most = max(s.most, s.now)
	if n < 0 {
		s.done++
	}
}

func TestCredentialChangeIsLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const all, limit = 50, 4
		g := NewWithT(t)
		connector := &countingConnector{changed: make(chan func(), 1)}
		env := start(t, nil, withConnector(connector), func(o *fleet.Options) { o.Connection.StartupLimit, o.Connection.ConnectTimeout = limit, time.Second })
		for n := range all {
			env.source.put(profile(fmt.Sprintf("c%d", n), healthy))
		}
		time.Sleep(time.Minute)
		g.Expect(env.ClusterNames()).To(HaveLen(all))
		connector.mu.Lock()
		connector.most, connector.done = 0, 0
		connector.mu.Unlock()

		began := time.Now()
		(<-connector.changed)()
		for done := 0; done < all; synctest.Wait() {
			time.Sleep(10 * time.Millisecond)
			connector.mu.Lock()
			done = connector.done
			connector.mu.Unlock()
		}
		g.Expect(connector.most).To(Equal(limit))
		g.Expect(time.Since(began)).To(BeNumerically("~", 1300*time.Millisecond, 10*time.Millisecond), "the wait for a slot does not count for ConnectTimeout")
		for _, status := range env.Status() {
			g.Expect(status).To(And(HaveField("State", fleet.Ready), HaveField("LastError", BeEmpty())))
			g.Expect(env.aware.of(status.Name)).To(HaveLen(1))
		}
		env.stop()
	})
}
