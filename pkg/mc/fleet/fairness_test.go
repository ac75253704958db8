// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"context"
	"fmt"
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

const hangs = "hangs"

func (i slowConnector) Connect(_ context.Context, p *inventory.Profile) (*fleet.Connection, error) {
	return &fleet.Connection{
		Cluster: fakeCluster{},
		Probe: func(ctx context.Context) (string, error) {
			if p.Status.AccessProviders[0].Cluster.Server == hangs || i.silent != nil && i.silent.Load() {
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

// listingAware starts one source in each cluster that needs time to list.
type listingAware struct {
	*awareRecorder
	list  time.Duration
	left  atomic.Int32
	ready chan struct{}
}

func (r *listingAware) Engage(ctx context.Context, name multicluster.ClusterName, cl cluster.Cluster) error {
	requestStart(ctx, func() {
		select {
		case <-ctx.Done():
			return
		case <-time.After(r.list):
		}
		if r.left.Add(-1) == 0 {
			close(r.ready)
		}
	})
	return r.awareRecorder.Engage(ctx, name, cl)
}

// timeToList returns how long a fleet needs until all healthy clusters are listed
// if others hang, which are added evenly between them.
func timeToList(t *testing.T, i slowConnector, well, hanging int) (took time.Duration) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		reader := &listingAware{list: i.list, ready: make(chan struct{})}
		reader.left.Store(int32(well))
		env := startWith(t, nil, func(e *awareRecorder) multicluster.Aware {
			reader.awareRecorder = e
			return reader
		}, withConnector(i), func(o *fleet.Options) {
			o.Connection.ConnectTimeout, o.Connection.MinBackoff, o.Connection.MaxBackoff = 0, 0, 0 // their defaults
		})
		all := make([]*inventory.Profile, 0, well+hanging)
		for n := range well + hanging {
			server := "well"
			if (n+1)*hanging/(well+hanging) > n*hanging/(well+hanging) {
				server = hangs
			}
			all = append(all, profile(fmt.Sprintf("c%d", n), server))
		}
		began := time.Now()
		env.source.put(all...)
		<-reader.ready
		took = time.Since(began)
		env.stop()
	})
	return took
}

func TestHangingClustersDelayFew(t *testing.T) {
	for _, i := range []slowConnector{
		{response: 5 * time.Millisecond, list: 5 * time.Millisecond},
		{response: 5 * time.Millisecond, list: 200 * time.Millisecond},
		{response: 100 * time.Millisecond, list: 100 * time.Millisecond},
		{response: 400 * time.Millisecond, list: 10 * time.Millisecond},
		{response: 300 * time.Millisecond, list: 2 * time.Second},
		{response: 900 * time.Millisecond, list: 900 * time.Millisecond},
	} {
		t.Run(fmt.Sprintf("responses take %v, lists %v", i.response, i.list), func(t *testing.T) {
			without, with := timeToList(t, i, 1900, 0), timeToList(t, i, 1900, 100)
			ratio := float64(with) / float64(without)
			t.Logf("without hanging clusters %v, with 100 of them %v: %.2f", without, with, ratio)
			if ratio >= 1.2 {
				t.Errorf("100 hanging clusters delay 1900 others by %.0f %%, want less than 20 %%", (ratio-1)*100)
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
			env.source.put(profile(fmt.Sprintf("c%d", n), "well"))
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
